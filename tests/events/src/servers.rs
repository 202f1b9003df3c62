//! The servers of the event folders, as the `server.toml` in each folder describes them.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use lambda_tools::{
    AgentCoreUser, ApiKeys, Auth, Context, EventKind, Failure, Gateway, Jwt, OAuth, Protocol,
    Secret, Server, StoreError, Tool,
    idempotency::Idempotency,
    oauth::Provider,
    quotas::Quota,
    secrets::{ReadFuture, ReadResult, SecretStore, Secrets},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{faults, stub::Stub};

/// The key that Twilio's stub accepts.
pub const TWILIO_KEY: &str = "AC00000000000000000000000000000000:auth-token:+15005550006";

/// `server.toml`, documented in `events/README.md`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    #[serde(rename = "description")]
    _description: String,
    tools: Vec<ToolSet>,
    base_path: Option<String>,
    public_url: Option<String>,
    protocols: Option<Vec<String>>,
    auth: Option<AuthDescription>,
    secrets: Option<BTreeMap<String, String>>,
    store: Option<BTreeMap<String, StoredValue>>,
    #[serde(default)]
    only_from_store: bool,
    idempotency: Option<IdempotencyKind>,
    quota: Option<QuotaDescription>,
    oauth: Option<Vec<ProviderKind>>,
    healthy: Option<bool>,
    events: Option<Vec<String>>,
    agentcore_user_header: Option<String>,
    agentcore_token_header: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ToolSet {
    Toolbox,
    Accounts,
    Arguments,
    Caller,
    Faults,
    Questions,
    Reports,
    User,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthDescription {
    api_keys: Option<Vec<String>>,
    jwt_secrets: Option<Vec<String>>,
    #[serde(default)]
    audiences: Vec<String>,
    #[serde(default)]
    subject_is_user: bool,
    #[serde(default)]
    gateway: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaDescription {
    tool: String,
    per_minute: u64,
}

/// The results of reading a secret: always the same, or the first and all later ones.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredValue {
    Value(String),
    Values([String; 2]),
    Error { error: ErrorKind, detail: String },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ErrorKind {
    Denied,
    Throttled,
    Unavailable,
    Undecodable,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum IdempotencyKind {
    Memory,
    Unavailable,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProviderKind {
    Google,
    Github,
}

/// Returns the server that `server.toml` in this folder describes.
/// # Panics
/// If the file is missing or says what it may not.
pub fn server_of(folder: &Path, stub: &Stub) -> Server {
    let path = folder.join("server.toml");
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; see events/README.md", path.display()));
    let description: Description =
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    description.server(stub)
}

impl Description {
    fn server(self, stub: &Stub) -> Server {
        let tools = self.tools.iter().flat_map(|set| set.tools(stub));
        let mut server = toolbox::server(tools.collect()).unwrap();
        if let Some(path) = self.base_path {
            server = server.base_path(path);
        }
        if let Some(url) = self.public_url {
            server = server.public_url(url);
        }
        if let Some(names) = self.protocols {
            server = server.protocols(names.iter().map(|name| protocol(name)));
        }
        if let Some(auth) = self.auth {
            server = server.auth(auth.auth());
        }
        if let Some(kind) = self.idempotency {
            server = server.idempotency(kind.idempotency());
        }
        if let Some(quota) = self.quota {
            server = server.quota(Quota::per_minute(quota.per_minute).of_tool(quota.tool));
        }
        if let Some(is_healthy) = self.healthy {
            server = server.healthy_when(move || is_healthy);
        }
        if let Some(names) = self.events {
            server = server.events(names.iter().map(|name| event_kind(name)));
        }
        if let Some(header) = self.agentcore_user_header {
            server = server.agentcore_user(AgentCoreUser::Header(header.try_into().unwrap()));
        }
        if let Some(header) = self.agentcore_token_header {
            server = server.agentcore_user(AgentCoreUser::Token(header.try_into().unwrap()));
        }
        if let Some(providers) = self.oauth {
            server = server.oauth(OAuth::with(providers.iter().map(ProviderKind::provider)));
        }
        let secrets = match (self.secrets, self.store) {
            (Some(fixed), None) => Secrets::fixed(fixed),
            (None, Some(values)) => Secrets::from_store(DescribedStore::of(values)),
            (None, None) => return server,
            (Some(_), Some(_)) => panic!("a server has either [secrets] or [store]"),
        };
        server.secrets(if self.only_from_store {
            secrets.only_from_store()
        } else {
            secrets
        })
    }
}

impl ToolSet {
    fn tools(&self, stub: &Stub) -> Vec<Tool> {
        match self {
            Self::Toolbox => toolbox::tools(stub.endpoints()),
            Self::Accounts => vec![with_two_accounts()],
            Self::Arguments => vec![arguments()],
            Self::Caller => vec![caller()],
            Self::Faults => faults::tools(),
            Self::Questions => vec![question()],
            Self::Reports => reports(),
            Self::User => vec![whoami()],
        }
    }
}

fn protocol(name: &str) -> Protocol {
    let mut all = Protocol::ALL.iter().copied();
    all.find(|protocol| format!("{protocol:?}") == name)
        .unwrap_or_else(|| panic!("there is no protocol '{name}'"))
}

fn event_kind(name: &str) -> EventKind {
    let mut kinds = EventKind::DEFAULT
        .iter()
        .chain(&[EventKind::AgentCore])
        .copied();
    kinds
        .find(|kind| format!("{kind:?}") == name)
        .unwrap_or_else(|| panic!("there is no kind of events '{name}'"))
}

impl AuthDescription {
    fn auth(self) -> Auth {
        let keys = self.api_keys.map(ApiKeys::with_ids);
        let auth = keys.map_or_else(Auth::none, Auth::from);
        let auth = if self.gateway {
            auth.or(Gateway::new())
        } else {
            auth
        };
        let Some(ids) = self.jwt_secrets else {
            return auth;
        };
        let audiences = self.audiences.into_iter();
        let jwt = audiences.fold(Jwt::with_secret_ids(ids), Jwt::audience);
        auth.or(if self.subject_is_user {
            jwt.subject_is_user()
        } else {
            jwt
        })
    }
}

impl IdempotencyKind {
    fn idempotency(&self) -> Idempotency {
        match self {
            Self::Memory => Idempotency::in_memory(),
            Self::Unavailable => Idempotency::in_store(faults::UnreachableStore),
        }
    }
}

impl ProviderKind {
    fn provider(&self) -> Provider {
        match self {
            Self::Google => Provider::google("client-id", "GOOGLE_CLIENT_SECRET"),
            Self::Github => Provider::github("client-id", "GITHUB_CLIENT_SECRET"),
        }
    }
}

/// A store with the described values.
struct DescribedStore {
    values: BTreeMap<String, StoredValue>,
    reads: AtomicUsize,
}

impl DescribedStore {
    fn of(values: BTreeMap<String, StoredValue>) -> Self {
        let reads = AtomicUsize::new(0);
        Self { values, reads }
    }
}

impl StoredValue {
    fn read(&self, nth: usize) -> ReadResult {
        let error = match self {
            Self::Value(value) => return Ok(Some(Secret::from(value.as_str()))),
            Self::Values(values) => return Ok(Some(Secret::from(values[nth.min(1)].as_str()))),
            Self::Error { error, detail } => (*error, detail.clone()),
        };
        Err(match error {
            (ErrorKind::Denied, detail) => StoreError::denied(detail),
            (ErrorKind::Throttled, detail) => StoreError::throttled(detail),
            (ErrorKind::Unavailable, detail) => StoreError::unavailable(detail),
            (ErrorKind::Undecodable, detail) => StoreError::undecodable(detail),
        })
    }
}

impl SecretStore for DescribedStore {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        let nth = self.reads.fetch_add(1, Ordering::Relaxed);
        let one = move |id: &String| self.values.get(id).map_or(Ok(None), |it| it.read(nth));
        Box::pin(async move { ids.iter().map(one).collect() })
    }

    fn location(&self, id: &str) -> String {
        format!("the store, as '{id}'")
    }
}

/// Returns a tool that needs tokens of three providers, one of which nobody knows.
fn with_two_accounts() -> Tool {
    /// Copies from one account to another.
    #[derive(Deserialize, JsonSchema)]
    struct Copy {}

    async fn copy(_: Copy) -> Result<(), Failure> {
        Ok(())
    }

    Tool::new("Accounts.Copy@1.0.0", copy)
        .authorization("google", ["mail"])
        .authorization("unknown", ["all"])
        .authorization("github", ["repo"])
}

/// Returns a tool that says for whom it runs.
fn whoami() -> Tool {
    /// Says who the user is.
    #[derive(Deserialize, JsonSchema)]
    struct Whoami {}

    async fn whoami(_: Whoami, cx: Context) -> Result<String, Failure> {
        Ok(cx.user_id().unwrap_or_default().to_owned())
    }

    Tool::new("Whoami.Get@1.0.0", whoami).user_id()
}

/// Returns a tool that says who calls.
fn caller() -> Tool {
    /// Says who calls.
    #[derive(Deserialize, JsonSchema)]
    struct WhoCalls {}

    async fn caller(_: WhoCalls, cx: Context) -> Result<String, Failure> {
        Ok(cx.caller().to_string())
    }

    Tool::new("Whoami.Caller@1.0.0", caller)
}

/// Returns a tool that takes any arguments, and says who calls it with how many, and for whom.
fn arguments() -> Tool {
    let input = json!({"type": "object"});
    let run = async |arguments: Value, cx: Context| {
        Ok::<_, Failure>(json!({
            "caller": cx.caller().to_string(),
            "user": cx.user_id(),
            "arguments": arguments.as_object().map(serde_json::Map::len),
        }))
    };
    Tool::dynamic(
        "Any.Arguments@1.0.0",
        "Takes any arguments.",
        input,
        json!({}),
        run,
    )
}

/// Returns a tool that asks its user.
fn question() -> Tool {
    /// Deletes everything.
    #[derive(Deserialize, JsonSchema)]
    struct Deletion {}

    /// The user's confirmation.
    #[derive(Deserialize, JsonSchema)]
    struct Confirmation {
        /// Whether to go on.
        go_on: bool,
    }

    async fn delete(_: Deletion, cx: Context) -> Result<&'static str, Failure> {
        let answer = cx.ask::<Confirmation>("delete", "Delete everything?")?;
        Ok(match answer {
            Some(Confirmation { go_on: true }) => "deleted",
            _ => "kept",
        })
    }

    Tool::new("Everything.Delete@1.0.0", delete)
}

/// Returns tools with several secrets.
fn reports() -> Vec<Tool> {
    /// Sends a report.
    #[derive(Deserialize, JsonSchema)]
    struct Send {}

    async fn send(_: Send, cx: Context) -> Result<String, Failure> {
        Ok(cx.secret("REPORT_URL")?.expose().to_owned())
    }

    let tool = |id: &'static str| {
        Tool::new(id, send)
            .secret("REPORT_KEY")
            .secret("REPORT_URL")
            .secret("REPORT_SIGNATURE")
    };
    let for_somebody = tool("Report.SendAs@1.0.0")
        .user_id()
        .authorization("google", ["mail"]);
    vec![tool("Report.Send@1.0.0"), for_somebody]
}
