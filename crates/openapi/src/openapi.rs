//! A document, its owner's options for the conversion, and the report on what became of it.

mod reduce;

use std::{collections::BTreeMap, fmt};

use lambda_tools_core::Tool;
use lambda_tools_schema::document::Document;
use serde_json::Value;

use crate::{
    ApiTools, OpenApiError,
    choice::{self, Choice},
    document::checked,
    input::Fixed,
    names::toolkit_of,
    operation::Operation,
    security::CredentialOptions,
    servers::ServerOptions,
};

/// An OpenAPI document, and the operations in it that become tools.
///
/// ```
/// # use lambda_tools_openapi::OpenApi;
/// let document = serde_json::json!({
///     "openapi": "3.1.0",
///     "info": {"title": "Pets API", "version": "1"},
///     "servers": [{"url": "https://pets.example"}],
///     "paths": {"/pets/{id}": {"get": {
///         "operationId": "getPet", "summary": "Returns a pet", "tags": ["Pets"],
///         "parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}],
///         "responses": {"200": {"description": "A pet", "content": {"application/json": {}}}},
///     }}},
/// });
/// let tools = OpenApi::new(document)?.include_tags(["Pets"]).tools()?;
/// assert_eq!(tools.len(), 1);
/// # Ok::<(), lambda_tools_openapi::OpenApiError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenApi {
    document: Document,
    toolkit: String,
    version: String,
    choice: Choice,
    servers: ServerOptions,
    credentials: CredentialOptions,
    names: BTreeMap<String, String>,
    descriptions: BTreeMap<String, String>,
    fixed: BTreeMap<String, Fixed>,
    readers: Vec<String>,
    idempotency_header: Option<String>,
    allows_private: bool,
    is_searchable: bool,
    lists_all: bool,
}

/// The tools of a document, and a report on the operations that were left out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reduction {
    /// The tools.
    pub tools: ApiTools,
    /// The result of converting the operations.
    pub report: Report,
}

/// The result of converting a document's operations.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The number of operations in the document.
    pub operations: usize,
    /// The number of those that were chosen.
    pub chosen: usize,
    /// The chosen operations that are no tools, with the reasons.
    pub left_out: Vec<Note>,
    /// Warnings about the generated tools.
    pub notes: Vec<Note>,
}

/// A sentence about an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The method and the path: `GET /pets/{id}`.
    pub operation: String,
    /// The sentence, without a period.
    pub text: String,
}

impl Note {
    pub(crate) fn new(operation: String, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { operation, text }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.text)
    }
}

impl OpenApi {
    /// Reads a document of OpenAPI 3.0, 3.1 or 3.2, in one file.
    ///
    /// # Errors
    /// The document is of another version, has no operations, or refers to other files.
    pub fn new(document: Value) -> Result<Self, OpenApiError> {
        let document = checked(document)?;
        if Operation::all(&document).is_empty() {
            let webhooks = document.root()["webhooks"].as_object();
            let webhooks = webhooks.filter(|it| !it.is_empty());
            let text = webhooks.map_or("", |_| ", but webhooks, which an API calls itself");
            let text = format!("the document has no operations{text}");
            return Err(OpenApiError::new(text));
        }
        Ok(Self {
            toolkit: toolkit_of(
                document.root()["info"]["title"]
                    .as_str()
                    .unwrap_or_default(),
            ),
            document,
            version: "1.0.0".to_owned(),
            choice: Choice::default(),
            servers: ServerOptions::default(),
            credentials: CredentialOptions::default(),
            names: BTreeMap::new(),
            descriptions: BTreeMap::new(),
            fixed: BTreeMap::new(),
            readers: Vec::new(),
            idempotency_header: None,
            allows_private: false,
            is_searchable: false,
            lists_all: false,
        })
    }

    /// Sets the toolkit's name; by default it is made from the document's title.
    pub fn toolkit(mut self, name: impl Into<String>) -> Self {
        self.toolkit = name.into();
        self
    }

    /// Sets the version of all tools, `1.0.0` by default. Raise it when their inputs change.
    pub fn tool_version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Chooses all operations.
    pub fn include_all(mut self) -> Self {
        self.choice.all = true;
        self
    }

    /// Chooses the operations with one of these tags.
    pub fn include_tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.choice.tags.extend(tags.into_iter().map(Into::into));
        self
    }

    /// Chooses operations by their ids or by method and path, such as `GET /pets/{id}`.
    pub fn include_operations<S: Into<String>>(mut self, ids: impl IntoIterator<Item = S>) -> Self {
        let ids = ids.into_iter().map(Into::into);
        self.choice.operations.extend(ids);
        self
    }

    /// Chooses the operations of the paths that match a pattern, in which `*` is any text.
    pub fn include_paths<S: Into<String>>(mut self, globs: impl IntoIterator<Item = S>) -> Self {
        self.choice.paths.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Chooses the operations with these methods. If operations are also chosen in another way,
    /// keeps only those of them that have these methods.
    pub fn include_methods<S: Into<String>>(
        mut self,
        methods: impl IntoIterator<Item = S>,
    ) -> Self {
        let methods = methods.into_iter().map(Into::into);
        self.choice.methods.extend(methods);
        self
    }

    /// Leaves out operations, by their ids or by method and path.
    pub fn exclude<S: Into<String>>(mut self, ids: impl IntoIterator<Item = S>) -> Self {
        self.choice.excluded.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Sets the name of an operation's tool within its toolkit.
    pub fn rename(mut self, operation: impl Into<String>, name: impl Into<String>) -> Self {
        self.names.insert(operation.into(), name.into());
        self
    }

    /// Sets the description of an operation's tool.
    pub fn describe(mut self, operation: impl Into<String>, text: impl Into<String>) -> Self {
        self.descriptions.insert(operation.into(), text.into());
        self
    }

    /// Sets the value of a parameter or of a field of the body, which models then neither see nor
    /// choose.
    pub fn fix(
        mut self,
        operation: impl Into<String>,
        name: impl Into<String>,
        value: Value,
    ) -> Self {
        let fixed = self.fixed.entry(operation.into()).or_default();
        fixed.insert(name.into(), value);
        self
    }

    /// Declares that operations only read although their methods do not say so: by their ids, or by
    /// patterns of their paths.
    pub fn reads<S: Into<String>>(mut self, operations: impl IntoIterator<Item = S>) -> Self {
        self.readers.extend(operations.into_iter().map(Into::into));
        self
    }

    /// Sets where the document comes from: relative URLs of its servers are relative to that.
    pub fn document_url(mut self, url: impl Into<String>) -> Self {
        self.servers.document_url = Some(url.into());
        self
    }

    /// Sets the URL that paths are appended to; needed if the document names none or several.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.servers.base_url = Some(url.into());
        self
    }

    /// Allows other hosts that the document names for some of its operations.
    pub fn hosts<S: Into<String>>(mut self, hosts: impl IntoIterator<Item = S>) -> Self {
        self.servers.hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the document's server URLs.
    pub fn server_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.servers.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the id of the secret for a security scheme; by default it is made from both names, such
    /// as `FIGMA_PERSONAL_ACCESS_TOKEN`.
    pub fn secret(mut self, scheme: impl Into<String>, id: impl Into<String>) -> Self {
        self.credentials.secrets.insert(scheme.into(), id.into());
        self
    }

    /// Sends a secret as a bearer token with each request, whatever the document says.
    pub fn bearer(mut self, id: impl Into<String>) -> Self {
        self.credentials.bearer = Some(id.into());
        self
    }

    /// Prefers these security schemes where an operation has alternatives, and uses them where the
    /// document does not say which it needs. `SCHEME:clientCredentials` also chooses a flow.
    pub fn security<S: Into<String>>(mut self, schemes: impl IntoIterator<Item = S>) -> Self {
        for scheme in schemes.into_iter().map(Into::into) {
            let (scheme, flow) = match scheme.split_once(':') {
                Some((scheme, flow)) => (scheme.to_owned(), Some(flow.to_owned())),
                None => (scheme, None),
            };
            self.credentials.preferred.insert(scheme, flow);
        }
        self
    }

    /// Sends the call's id in a header by which the API recognizes repeated requests, such as
    /// `Idempotency-Key`.
    pub fn idempotency_header(mut self, name: impl Into<String>) -> Self {
        self.idempotency_header = Some(name.into());
        self
    }

    /// Allows an API at an address that is not reachable from the internet.
    pub fn allow_private(mut self) -> Self {
        self.allows_private = true;
        self
    }

    /// Serves tools to search, describe and call the operations, in place of one for each.
    pub fn searchable(mut self) -> Self {
        self.is_searchable = true;
        self
    }

    /// Allows more than 40 tools in one list.
    pub fn list_all(mut self) -> Self {
        self.lists_all = true;
        self
    }

    /// Returns true if operations are chosen: by tags, ids, paths, methods or all.
    #[must_use]
    pub fn has_choice(&self) -> bool {
        let only = Choice::default();
        let operations = Operation::all(&self.document);
        let mut operations = operations.iter();
        self.choice.is_made()
            || operations.any(|it| only.includes(it, it.extension(&self.document)))
    }

    /// Returns the number of operations in the document.
    #[must_use]
    pub fn operations(&self) -> usize {
        Operation::all(&self.document).len()
    }

    /// Returns the groups of operations to choose from, with their sizes: tags, or the first segments
    /// of the paths of operations without a tag, such as `/pets`.
    #[must_use]
    pub fn tags(&self) -> Vec<(String, usize)> {
        choice::groups(&self.document)
    }

    /// Returns the tools, to be served with others: see [`ApiTools::tools`].
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce) and of [`ApiTools::tools`].
    pub fn tools(&self) -> Result<Vec<Tool>, OpenApiError> {
        self.reduce()?.tools.tools()
    }
}
