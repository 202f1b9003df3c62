//! A client for any MCP server over streamable HTTP.
//!
//! It speaks revision 2026-07-28 and the earlier ones, which begin with `initialize`. It uses the
//! same calls, outcomes and retries as the OXP client, so that a program can call either protocol.

mod attempt;
mod call;
mod connection;
mod event_stream;
mod exchange;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod header;
mod message;
mod reply;
mod revision;
mod tool;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use http::HeaderValue;

use super::{
    ClientError, JwtSigner,
    credentials::ClientCredentials,
    http::HttpClient,
    retry::{Attempts, RetryLimits},
};
use crate::{Secret, payload::JsonObject};
use connection::Connection;
use exchange::AttemptTime;
use tool::ListedTool;

pub use super::{
    call::{CallRequest, InputResponse},
    outcome::{
        AuthorizationChallenge, CallOutcome, CallReply, InputRequest, InputRequired,
        MissingRequirements, ServerError, ToolError,
    },
};
pub use connection::McpServer;
pub use revision::McpRevision;
pub use tool::{McpTool, McpToolHints};

/// The maximum number of pages of a list: a server's cursors may never end.
const MAX_PAGES: usize = 1000;

/// A client for one server.
///
/// By default, an attempt takes at most 30 seconds; a request has at most 4 attempts and takes at
/// most 90 seconds, including the waits between attempts; a response may be at most 16 MiB. Clones
/// share what the client remembers of the server: its revision, its session and its tools.
///
/// ```no_run
/// # async fn run() -> Result<(), lambda_tools::client::ClientError> {
/// use lambda_tools::client::mcp::{CallOutcome, CallRequest, McpClient};
/// use serde_json::json;
///
/// let client = McpClient::new("https://tools.example/mcp")?.api_key("my-api-key");
/// for tool in client.tools().await? {
///     println!("{}: {}", tool.name, tool.description);
/// }
/// let call = CallRequest::new("Calculator_Add").input(json!({"a": 10, "b": 5}));
/// match client.call(&call).await?.outcome {
///     CallOutcome::Value(value) => println!("{value}"),
///     other => println!("{}", other.message()),
/// }
/// let sum: f64 = client.run(&call).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct McpClient {
    http: HttpClient,
    limits: RetryLimits,
    /// The only revision to use.
    revision: Option<McpRevision>,
    shared: Arc<Shared>,
}

/// The state that all clones share.
#[derive(Default)]
struct Shared {
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    recognizes_call_ids: AtomicBool,
    tools: Mutex<HashMap<String, ListedTool>>,
    next_id: AtomicU64,
}

impl McpClient {
    /// A client for the server at this URL, such as `https://tools.example/mcp`, without
    /// credentials. A URL without a path gets `/mcp`; any other is used as it is.
    ///
    /// # Errors
    /// The URL is invalid, has a query, or contains credentials.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let mut http = HttpClient::new(url)?.with_default_path("/mcp");
        http.accept = HeaderValue::from_static("application/json, text/event-stream");
        Ok(Self {
            http,
            limits: RetryLimits::default(),
            revision: None,
            shared: Arc::default(),
        })
    }

    /// Sends an API key, as `Authorization: Bearer`.
    #[must_use]
    pub fn api_key(self, key: impl Into<Secret>) -> Self {
        self.credentials(ClientCredentials::ApiKey(key.into(), None))
    }

    /// Sends JWTs that the client signs itself.
    #[must_use]
    pub fn jwt(self, jwt: JwtSigner) -> Self {
        self.credentials(ClientCredentials::Jwt(jwt))
    }

    /// Allows credentials to be sent to other machines over `http://`. Use it only for a server inside
    /// a network that you trust: without encryption, everyone on the way can read them.
    #[must_use]
    pub fn allow_http(mut self) -> Self {
        self.http.allows_http = true;
        self
    }

    fn credentials(mut self, credentials: ClientCredentials) -> Self {
        self.http.credentials = credentials;
        // A session and a list may depend on who asks.
        self.shared = Arc::default();
        self
    }

    /// Sets the revision. Without this, the client asks for 2026-07-28, and begins with
    /// `initialize` if the server does not support it. A server may respond to `initialize` with
    /// another revision, which is then used.
    #[must_use]
    pub fn revision(mut self, revision: McpRevision) -> Self {
        self.revision = Some(revision);
        self.shared = Arc::default();
        self
    }

    /// Sets the time limit of one attempt.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.limits.timeout = time;
        self
    }

    /// Sets the time limit of a request, including all its attempts and the waits between them.
    #[must_use]
    pub fn deadline(mut self, time: Duration) -> Self {
        self.limits.deadline = time;
        self
    }

    /// Sets the maximum number of attempts; 1 disables retries.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.limits.attempts = attempts.max(1);
        self
    }

    /// Sets the maximum size of a response in bytes.
    #[must_use]
    pub fn max_response_size(mut self, bytes: usize) -> Self {
        self.http.max_response_size = bytes;
        self
    }

    /// The server's description of itself. It is requested once; other methods do so on their own.
    ///
    /// # Errors
    /// The server cannot be reached, or shares no revision with this client.
    pub async fn server(&self) -> Result<McpServer, ClientError> {
        let mut attempts = Attempts::new(self.limits);
        loop {
            let time = AttemptTime::new(attempts.begin());
            match self.connection(time).await {
                Ok(connection) => return Ok(connection.server.clone()),
                Err(failed) if attempts.wait_for_next(failed.advice).await => {}
                Err(failed) => return Err(failed.error),
            }
        }
    }

    /// `tools/list`: all tools, from all pages. The pages together have the deadline of one request
    /// and the maximum size of one response.
    ///
    /// # Errors
    /// No attempt returned a list, or the pages exceed a limit.
    pub async fn tools(&self) -> Result<Vec<McpTool>, ClientError> {
        self.list(self.limits).await
    }

    async fn list(&self, limits: RetryLimits) -> Result<Vec<McpTool>, ClientError> {
        // All pages together have the limits of one response.
        let client = Self {
            http: self.http.for_one_list(),
            ..self.clone()
        };
        let pages = Attempts::new(limits);
        let mut tools = Vec::new();
        let mut listed = HashMap::new();
        let mut cursors = HashSet::new();
        let mut params = JsonObject::new();
        loop {
            let deadline = pages.remaining();
            let limits = RetryLimits { deadline, ..limits };
            let (result, revision) = client.request("tools/list", &params, limits).await?;
            let page = tool::page_in(result, revision.is_modern())?;
            for (tool, details) in page.tools {
                listed.insert(tool.name.clone(), details);
                tools.push(tool);
            }
            let Some(cursor) = page.next_cursor else {
                break;
            };
            params.insert("cursor".into(), cursor.as_str().into());
            if !cursors.insert(cursor) || cursors.len() >= MAX_PAGES {
                let text = "the pages of the list of tools do not end";
                return Err(ClientError::Unreadable(text.into()));
            }
        }
        *self.listed() = listed;
        Ok(tools)
    }

    fn listed(&self) -> MutexGuard<'_, HashMap<String, ListedTool>> {
        let tools = self.shared.tools.lock();
        tools.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient")
            .field("http", &self.http)
            .field("limits", &self.limits)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
