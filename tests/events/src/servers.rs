//! The servers of the event folders, as the `server.toml` in each folder describes them.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use lambda_tools::{
    AgentCoreUser, ApiKeys, Auth, Content, Context, EventKind, Failure, Gateway, Jwt, OAuth,
    Prompt, Protocol, Resource, Secret, Server, StoreError, Tool, Toolkit,
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
    #[serde(default)]
    allow: BTreeMap<String, Vec<String>>,
    /// Also serves resources and prompts.
    #[serde(default)]
    shop: bool,
    #[serde(default)]
    secret_headers: BTreeMap<String, String>,
    secrets: Option<BTreeMap<String, String>>,
    store: Option<BTreeMap<String, StoredValue>>,
    #[serde(default)]
    only_from_store: bool,
    idempotency: Option<String>,
    quota: Option<QuotaDescription>,
    oauth: Option<Vec<String>>,
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
    Error { error: String, detail: String },
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
        let mut server = if self.shop {
            Server::new(shop(tools.collect()))
        } else {
            toolbox::server(tools.collect()).unwrap()
        };
        server = server.serve_openapi(true);
        server = with(server, self.base_path, Server::base_path);
        server = with(server, self.public_url, Server::public_url);
        server = with(server, self.protocols, |server, names| {
            server.protocols(names.iter().map(|name| named(Protocol::ALL, name)))
        });
        server = with(server, self.events, |server, names| {
            let all = [EventKind::DEFAULT, &[EventKind::AgentCore]].concat();
            server.events(names.iter().map(|name| named(&all, name)))
        });
        server = with(server, self.auth, |server, auth| {
            let limits = self.allow.into_iter();
            server.auth(limits.fold(auth.auth(), |auth, (tools, rules)| {
                auth.restrict(tools, rules)
            }))
        });
        for (id, name) in self.secret_headers {
            server = server.secret_header(id, name.try_into().unwrap());
        }
        server = with(server, self.idempotency, |server, kind| {
            server.idempotency(idempotency(&kind))
        });
        server = with(server, self.quota, |server, quota| {
            server.quota(Quota::per_minute(quota.per_minute).of_tool(quota.tool))
        });
        server = with(server, self.healthy, |server, is_healthy| {
            server.healthy_when(move || is_healthy)
        });
        server = with(server, self.agentcore_user_header, |server, name| {
            server.agentcore_user(AgentCoreUser::Header(name.try_into().unwrap()))
        });
        server = with(server, self.agentcore_token_header, |server, name| {
            server.agentcore_user(AgentCoreUser::Token(name.try_into().unwrap()))
        });
        server = with(server, self.oauth, |server, names| {
            server.oauth(OAuth::with(names.iter().map(|name| provider(name))))
        });
        let secrets = match (self.secrets, self.store) {
            (Some(fixed), None) => Secrets::fixed(fixed),
            (None, Some(values)) => Secrets::from_store(DescribedStore {
                values,
                reads: AtomicUsize::new(0),
            }),
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

/// Returns the server with a setting, if it is described.
fn with<T>(server: Server, setting: Option<T>, set: impl FnOnce(Server, T) -> Server) -> Server {
    match setting {
        Some(setting) => set(server, setting),
        None => server,
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

/// Returns the one of these values that has this name in Rust.
fn named<T: Copy + Debug>(all: &[T], name: &str) -> T {
    let mut all = all.iter().copied();
    all.find(|it| format!("{it:?}") == name)
        .unwrap_or_else(|| panic!("there is no '{name}'"))
}

impl AuthDescription {
    fn auth(self) -> Auth {
        let keys = self.api_keys.map(ApiKeys::with_ids);
        let mut auth = keys.map_or_else(Auth::none, Auth::from);
        if self.gateway {
            auth = auth.or(Gateway);
        }
        if let Some(ids) = self.jwt_secrets {
            let audiences = self.audiences.into_iter();
            let mut jwt = audiences.fold(Jwt::with_secret_ids(ids), Jwt::audience);
            if self.subject_is_user {
                jwt = jwt.subject_is_user();
            }
            auth = auth.or(jwt);
        }
        auth
    }
}

fn idempotency(kind: &str) -> Idempotency {
    match kind {
        "memory" => Idempotency::in_memory(),
        "unavailable" => Idempotency::in_store(faults::UnreachableStore),
        other => panic!("there is no idempotency '{other}'"),
    }
}

fn provider(name: &str) -> Provider {
    match name {
        "google" => Provider::google("client-id", "GOOGLE_CLIENT_SECRET"),
        "github" => Provider::github("client-id", "GITHUB_CLIENT_SECRET"),
        other => panic!("there is no provider '{other}'"),
    }
}

/// A store with the described values.
struct DescribedStore {
    values: BTreeMap<String, StoredValue>,
    reads: AtomicUsize,
}

impl StoredValue {
    fn read(&self, nth: usize) -> ReadResult {
        let error = match self {
            Self::Value(value) => return Ok(Some(Secret::from(value.as_str()))),
            Self::Values(values) => return Ok(Some(Secret::from(values[nth.min(1)].as_str()))),
            Self::Error { error, detail } => (&**error, detail.clone()),
        };
        Err(match error {
            ("denied", detail) => StoreError::denied(detail),
            ("throttled", detail) => StoreError::throttled(detail),
            ("unavailable", detail) => StoreError::unavailable(detail),
            ("undecodable", detail) => StoreError::undecodable(detail),
            (other, _) => panic!("there is no error '{other}'"),
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

/// Takes nothing.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// An order of the shop.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The number of the order.
    number: String,
}

/// Asks for a reply to a customer.
#[derive(Deserialize, JsonSchema)]
struct Reply {
    /// The customer's message.
    text: String,
    /// The tone of the reply.
    tone: Option<Tone>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Tone {
    Friendly,
    Formal,
}

/// Returns tools with resources and prompts.
fn shop(tools: Vec<Tool>) -> Toolkit {
    let order = async |Order { number }: Order| {
        if number == "0" {
            return Err(Failure::new("The shop is closed").retry());
        }
        Ok((number == "7").then(|| Content::text("two lamps").media_type("text/markdown")))
    };
    let reply = async |Reply { text, tone }: Reply| {
        let tone = tone.map(|it| format!(" ({it:?})")).unwrap_or_default();
        Ok::<_, Failure>(format!("Reply{tone}: {text}"))
    };
    let resources = [
        Resource::text("shop://terms", "terms", "30 days"),
        Resource::bytes("shop://logo", "logo", "image/png", *b"\x89PNG"),
        Resource::with("shop://orders/{number}", "order", order)
            .declare(|it| it.allow(["caller:KEY"])),
    ];
    let toolkit = Toolkit::new(tools).unwrap().resources(resources).unwrap();
    toolkit.prompts([Prompt::new("reply", reply)]).unwrap()
}

/// Returns a tool that needs tokens of three providers, one of which nobody knows.
fn with_two_accounts() -> Tool {
    let copy = async |_: Nothing| Ok::<_, Failure>(());
    Tool::new("Accounts.Copy@1.0.0", copy)
        .description("Copies from one account to another.")
        .authorization("google", ["mail"])
        .authorization("unknown", ["all"])
        .authorization("github", ["repo"])
}

/// Returns a tool that says for whom it runs.
fn whoami() -> Tool {
    let user = async |_: Nothing, cx: Context| {
        Ok::<_, Failure>(cx.user_id().unwrap_or_default().to_owned())
    };
    let tool = Tool::new("Whoami.Get@1.0.0", user).user_id();
    tool.description("Says who the user is.")
}

/// Returns a tool that says who calls.
fn caller() -> Tool {
    let caller = async |_: Nothing, cx: Context| Ok::<_, Failure>(cx.caller().to_string());
    Tool::new("Whoami.Caller@1.0.0", caller).description("Says who calls.")
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
    let (description, any) = ("Takes any arguments.", json!({}));
    Tool::dynamic("Any.Arguments@1.0.0", description, input, any, run)
}

/// Returns a tool that asks its user.
fn question() -> Tool {
    /// The user's confirmation.
    #[derive(Deserialize, JsonSchema)]
    struct Confirmation {
        /// Whether to go on.
        go_on: bool,
    }

    async fn delete(_: Nothing, cx: Context) -> Result<&'static str, Failure> {
        let answer = cx.ask::<Confirmation>("delete", "Delete everything?")?;
        Ok(match answer {
            Some(Confirmation { go_on: true }) => "deleted",
            _ => "kept",
        })
    }

    Tool::new("Everything.Delete@1.0.0", delete).description("Deletes everything.")
}

/// Returns tools with several secrets.
fn reports() -> Vec<Tool> {
    let send = async |_: Nothing, cx: Context| {
        Ok::<_, Failure>(cx.secret("REPORT_URL")?.expose().to_owned())
    };
    let tool = |id: &'static str| {
        Tool::new(id, send)
            .description("Sends a report.")
            .secret("REPORT_KEY")
            .secret("REPORT_URL")
            .secret("REPORT_SIGNATURE")
    };
    let for_somebody = tool("Report.SendAs@1.0.0")
        .user_id()
        .authorization("google", ["mail"]);
    vec![tool("Report.Send@1.0.0"), for_somebody]
}
