//! The reduced tools: what a deployed program needs from a document.
//!
//! They are a file that an owner reads, edits and commits. The program that serves them parses no
//! OpenAPI document.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::OpenApiError;

/// The format of the file.
pub(crate) const FORMAT: u32 = 1;

/// The tools of an API, with the requests that they send.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiTools {
    pub(crate) format: u32,
    /// The title of the API.
    pub(crate) title: String,
    /// The version of the API.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) version: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) description: String,
    /// The URL that paths are appended to.
    pub(crate) base_url: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) allow_private: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) searchable: bool,
    /// The header in which the API takes the id of a call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) idempotency_header: Option<String>,
    /// The security schemes, by their names in the document.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) credentials: BTreeMap<String, Credential>,
    pub(crate) tools: Vec<ApiTool>,
    /// The arguments of the command that made the file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) made_with: Vec<String>,
    /// A hash of the rest, by which the command recognizes a file that was edited.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) checksum: String,
}

/// A security scheme, and where its credentials come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Credential {
    /// A header whose value is a secret, after a prefix such as `Bearer `.
    Header {
        name: String,
        secret: String,
        #[serde(default, skip_serializing_if = "is_default")]
        prefix: String,
    },
    Query {
        name: String,
        secret: String,
    },
    Cookie {
        name: String,
        secret: String,
    },
    /// HTTP Basic, whose secret is `user:password`.
    Basic {
        secret: String,
    },
    /// The token of the user, who grants it to the server.
    User {
        provider: String,
        authorize_url: String,
        token_url: String,
    },
    /// A token that the API issues to the server: RFC 6749, 4.4.
    Client {
        token_url: String,
        client_id: String,
        client_secret: String,
    },
}

/// A tool and its request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiTool {
    pub(crate) id: String,
    /// The operation in the document, for people.
    pub(crate) operation: String,
    pub(crate) description: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) read_only: bool,
    /// Whether it may delete or overwrite something; `None` if nobody has said so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) destructive: Option<bool>,
    /// The seconds for which equal calls without an id are one call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) once: Option<u64>,
    /// The names of the security schemes, with the scopes that the operation needs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) credentials: BTreeMap<String, Vec<String>>,
    /// Sets of properties, of which one must be there: an input's schema has no alternatives.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) one_of: Vec<Vec<String>>,
    pub(crate) request: RequestPlan,
    pub(crate) input: Value,
}

/// The rules by which a request is made from an input.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestPlan {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The URL that the path is appended to, if it is not that of the other tools.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) base_url: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) parameters: Vec<ParameterPlan>,
    /// The parts of the input that are not parameters.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) body: Option<BodyPlan>,
    pub(crate) answer: Answer,
}

/// A parameter of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParameterPlan {
    /// The property of the input. `None` for a parameter with a fixed value.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) key: Option<String>,
    /// The name in the request, if it is not the key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) name: Option<String>,
    #[serde(rename = "in")]
    pub(crate) place: Place,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) encoding: Encoding,
    /// True if reserved characters stay as they are: `allowReserved`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) reserved: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) fixed: Option<Value>,
    /// The schema of the property, while the tool is served.
    #[serde(skip)]
    pub(crate) schema: Value,
}

impl ParameterPlan {
    /// Returns the name in the request.
    pub(crate) fn name(&self) -> &str {
        let name = self.name.as_deref().or(self.key.as_deref());
        name.unwrap_or_default()
    }
}

/// The place of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

/// The form of lists and objects in a parameter: OpenAPI 3.1, Style Values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Encoding {
    /// One parameter for each item in a query, commas elsewhere.
    #[default]
    Usual,
    /// Properties as `name=value`, with commas between them, in a path or a header.
    Exploded,
    Comma,
    Space,
    Pipe,
    /// `name[property]=value`.
    Deep,
    Json,
}

/// The body of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BodyPlan {
    pub(crate) media_type: String,
    pub(crate) shape: Shape,
    /// True if a body is sent even if it is empty.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) required: bool,
    /// The property that contains the fields.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) envelope: Option<String>,
    /// True if there is no such property without fields.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) optional_envelope: bool,
    /// The names of fields whose properties in the input have other names.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) names: BTreeMap<String, String>,
    /// The fields of a multipart body that are files, by their names.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) files: BTreeSet<String>,
    /// The fields of a form whose encoding is not the usual one, by their names.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) encodings: BTreeMap<String, Encoding>,
    /// The media types of parts that are not the usual ones, by the names of their fields.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) media_types: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) fixed: Map<String, Value>,
}

/// The place of a body in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    /// Its fields are properties of the input.
    Fields,
    /// It is the property `body`.
    #[default]
    Whole,
    /// It is the text in `body`.
    Text,
    /// It is the bytes in `body`, in base64.
    Base64,
}

/// The form in which a response reaches the model, with its media type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// JSON, or nothing.
    Json(String),
    Text(String),
    /// Bytes, such as an image.
    Content(String),
    /// The URL that the API redirects to.
    Redirect,
    /// Whatever it is.
    Any,
}

/// A provider at which a program is registered, for users to grant it their tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserProvider {
    /// The provider's id.
    pub id: String,
    /// The URL at which users consent.
    pub authorize_url: String,
    /// The URL at which tokens are issued.
    pub token_url: String,
    /// The scopes that the tools need.
    pub scopes: Vec<String>,
}

impl ApiTools {
    /// Keeps the arguments of the command that makes a file of the tools.
    #[must_use]
    pub fn made_with(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.made_with = arguments.into_iter().collect();
        self.checksum.clear();
        self.checksum = hash(&self.to_json());
        self
    }

    /// Returns true if a file is not as the command has written it.
    #[must_use]
    pub fn is_edited(json: &str) -> bool {
        Self::from_json(json).map_or(true, |mut it| {
            mem::take(&mut it.checksum) != hash(&it.to_json())
        })
    }

    /// Reads a file that [`to_json`](Self::to_json) has written, such as
    /// `include_str!("../tools.json")`.
    pub fn from_json(json: &str) -> Result<Self, OpenApiError> {
        let error = |text| OpenApiError::new(format!("the file of tools {text}"));
        let tools: Result<Self, _> = serde_json::from_str(json);
        match tools.map_err(|it| error(format!("is not valid: {it}")))? {
            Self { format, .. } if format != FORMAT => {
                Err(error(format!("has the format {format}, not {FORMAT}")))
            }
            tools => Ok(tools),
        }
    }

    /// Returns the file's text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.unwrap_or_else(|_| unreachable!("all keys are texts")) + "\n"
    }

    /// Sets another URL of the same API, such as that of a test environment. Tools with a URL of
    /// their own use it, too.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        for tool in &mut self.tools {
            tool.request.base_url = None;
        }
        self
    }

    /// Allows an API whose name leads to an address that is not reachable from the internet, such as
    /// one in a VPC or on this machine.
    #[must_use]
    pub fn allow_private(mut self) -> Self {
        self.allow_private = true;
        self
    }

    /// Returns the URL that paths are appended to.
    #[must_use]
    pub fn api_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the title of the API.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the version of the API as `x.y.z`, of the numbers that the document's one begins with.
    #[must_use]
    pub fn version(&self) -> String {
        let start = self.version.trim_start_matches('v');
        let end = start.find(|it: char| !it.is_ascii_digit() && it != '.');
        let numbers = start[..end.unwrap_or(start.len())].split('.');
        let mut numbers = numbers.map(|it| it.parse::<u32>().ok());
        let mut number = |default| numbers.next().flatten().unwrap_or(default);
        format!("{}.{}.{}", number(1), number(0), number(0))
    }

    /// Returns the first paragraph of the document's description of the API, as plain text.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the ids of the tools, with the methods and paths of their operations.
    pub fn ids(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tools.iter().map(|it| (&*it.id, &*it.operation))
    }

    /// Returns the ids of the secrets that the tools need.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let all = self.credentials.values().flat_map(Credential::secrets);
        let unique: BTreeSet<_> = all.map(str::to_owned).collect();
        unique.into_iter().collect()
    }

    /// Returns the providers whose tokens the tools need.
    #[must_use]
    pub fn providers(&self) -> Vec<UserProvider> {
        let mut scopes = scopes_of(&self.tools);
        let providers = self.credentials.iter().filter_map(|(scheme, it)| match it {
            Credential::User {
                provider,
                authorize_url,
                token_url,
            } => Some(UserProvider {
                id: provider.clone(),
                authorize_url: authorize_url.clone(),
                token_url: token_url.clone(),
                scopes: Vec::from_iter(scopes.remove(&**scheme).unwrap_or_default()),
            }),
            _ => None,
        });
        providers.collect()
    }
}

/// Returns the scopes that tools need of each security scheme.
pub(crate) fn scopes_of<'a>(
    tools: impl IntoIterator<Item = &'a ApiTool>,
) -> BTreeMap<&'a str, BTreeSet<String>> {
    let mut needs: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (scheme, scopes) in tools.into_iter().flat_map(|it| &it.credentials) {
        let known = needs.entry(&**scheme).or_default();
        known.extend(scopes.iter().cloned());
    }
    needs
}

impl Credential {
    /// Returns its place in a request, unless that is the header `Authorization`.
    pub(crate) fn place(&self) -> Option<(Place, &str)> {
        match self {
            Self::Header { name, .. } => Some((Place::Header, name)),
            Self::Query { name, .. } => Some((Place::Query, name)),
            Self::Cookie { name, .. } => Some((Place::Cookie, name)),
            _ => None,
        }
    }

    /// Returns the ids of its secrets.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        match self {
            Self::Header { secret, .. }
            | Self::Query { secret, .. }
            | Self::Cookie { secret, .. }
            | Self::Basic { secret } => vec![secret],
            Self::User { .. } => vec![],
            Self::Client {
                client_id,
                client_secret,
                ..
            } => vec![client_id, client_secret],
        }
    }
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
