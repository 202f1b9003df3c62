//! A client for any MCP server over streamable HTTP.
//!
//! It supports revision 2026-07-28 and the earlier ones, which begin with `initialize`. `rmcp`, the
//! official SDK, implements the protocol; this client adds the limits, credentials, outcomes and
//! retries of the OXP client, so that a program can call either protocol.

mod connection;
mod failure;
mod reply;
mod tool;
mod transport;

use std::sync::Arc;

use http::HeaderValue;
use lambda_tools_core::wire::mcp::CALL_ID;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ListToolsRequest, MetaObject,
    PaginatedRequestParams, RequestMetaObject, ServerResult,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    ClientError, ClientOptions,
    http::HttpClient,
    response::decode,
    retry::{Attempts, RetryAdvice, RetryLimits},
};
use connection::Connection;

pub use super::{
    call::{CallRequest, InputResponse},
    outcome::{
        AuthorizationChallenge, CallOutcome, CallReply, InputRequest, InputRequired,
        MissingRequirements, ServerError, ToolError,
    },
};
pub use connection::McpServer;
pub use tool::{McpTool, McpToolHints};

/// The maximum number of pages of a list: a server's cursors may never end.
const MAX_PAGES: usize = 1000;

/// A client for one server. Clones share the connection to it.
///
/// ```no_run
/// # mod lambda_tools { pub use lambda_tools_client as client; }
/// # async fn run() -> Result<(), lambda_tools::client::ClientError> {
/// use lambda_tools::client::{ClientOptions, mcp::{CallOutcome, CallRequest, McpClient}};
/// use serde_json::json;
///
/// let options = ClientOptions::default().api_key("my-api-key");
/// let client = McpClient::new("https://tools.example/mcp", options)?;
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
#[derive(Clone, Debug)]
pub struct McpClient {
    http: HttpClient,
    connection: Arc<tokio::sync::Mutex<Option<Connection>>>,
}

impl McpClient {
    /// Creates a client for the server at this URL, such as `https://tools.example/mcp`. A URL
    /// without a path gets `/mcp`; any other is used as it is.
    ///
    /// # Errors
    /// The URL is invalid, has a query, or contains credentials.
    pub fn new(url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let mut http = HttpClient::new(url, options)?.with_default_path("/mcp");
        http.accept = HeaderValue::from_static("application/json, text/event-stream");
        Ok(Self {
            http,
            connection: Arc::default(),
        })
    }

    /// Returns the server's description of itself. It is requested once; other methods do so on
    /// their own.
    ///
    /// # Errors
    /// The server cannot be reached, or shares no revision with this client.
    pub async fn server(&self) -> Result<McpServer, ClientError> {
        let mut attempts = Attempts::new(self.http.options.limits);
        loop {
            match self.connection(attempts.begin()).await {
                Ok(connection) => return Ok(connection.server()),
                Err(failed) if attempts.wait_for_next(failed.advice).await => {}
                Err(failed) => return Err(failed.error),
            }
        }
    }

    /// Returns all tools, from all pages of `tools/list`. The pages together have the deadline of
    /// one request and the maximum size of one response.
    ///
    /// # Errors
    /// No attempt returned a list, or the pages exceed a limit.
    pub async fn tools(&self) -> Result<Vec<McpTool>, ClientError> {
        let limits = self.http.options.limits;
        let pages = Attempts::new(limits);
        let mut request = ListToolsRequest::default();
        // All pages together have the limits of one response.
        request.extensions.insert(self.http.budget());
        let mut tools = Vec::new();
        for _ in 0..MAX_PAGES {
            let deadline = pages.remaining();
            let limits = RetryLimits { deadline, ..limits };
            let page = ClientRequest::ListToolsRequest(request.clone());
            let ServerResult::ListToolsResult(page) = self.request(page, limits).await? else {
                return Err(ClientError::Unreadable("it is not a list of tools".into()));
            };
            tools.extend(page.tools.into_iter().map(McpTool::of));
            let Some(cursor) = page.next_cursor else {
                return Ok(tools);
            };
            let params = PaginatedRequestParams::default();
            request.params = Some(params.with_cursor(Some(cursor)));
        }
        let text = "the pages of the list of tools do not end";
        Err(ClientError::Unreadable(text.to_owned()))
    }

    /// Runs one tool, with `tools/call`. All attempts have the same call id.
    ///
    /// An attempt is repeated if the server asks for it: with 408, 429, or a status with
    /// `Retry-After`, or, if it was built with this library, with a failure that may be retried.
    /// After a network error, a timeout or another 5xx, the tool may have run. It is then called
    /// again only if the server recognizes call ids, which servers built with this library do.
    ///
    /// The value is the result's `structuredContent`, as the server sent it; without it, the text,
    /// or the list of content blocks if some are not text. MCP reports an invalid input like any
    /// other failure of a tool, as [`CallOutcome::ToolError`]; errors of JSON-RPC, such as an
    /// unknown tool, are a [`CallOutcome::ServerError`].
    ///
    /// # Errors
    /// [`ClientError::Unsupported`] if MCP cannot carry the call: it has a user, tokens, secrets or a
    /// trace id, or an input that is not an object; or if no attempt got a response about the call.
    pub async fn call(&self, call: &CallRequest) -> Result<CallReply, ClientError> {
        let call_id = call.id();
        let request = CallToolRequest::new(params_of(call, &call_id)?);
        let request = ClientRequest::CallToolRequest(request);
        let mut attempts = Attempts::new(self.http.options.limits);
        loop {
            let limit = attempts.begin();
            let (reply, advice) = match self.attempt(request.clone(), limit).await {
                Ok(result) => (CallReply::of_result(result, &call_id), RetryAdvice::Done),
                Err(failed) => (CallReply::of_error(failed.error, &call_id), failed.advice),
            };
            let of_reply = reply.as_ref().ok().and_then(|it| it.outcome.advice());
            if !attempts.wait_for_next(of_reply.unwrap_or(advice)).await {
                let attempts = attempts.count;
                return reply.map(|it| CallReply { attempts, ..it });
            }
        }
    }

    /// Runs one tool and returns its value.
    ///
    /// Many servers, and those built with this library, wrap a value that is not an object as
    /// `{"result": …}`, and nothing in the response says so. A value that is not a `V`, but has this
    /// shape, is therefore read once more without the wrapper.
    ///
    /// # Errors
    /// Those of [`call`](Self::call), [`ClientError::NoValue`] for any other outcome, and
    /// [`ClientError::Unreadable`] for a value that is not a `V`.
    pub async fn run<V: DeserializeOwned>(&self, call: &CallRequest) -> Result<V, ClientError> {
        let value = self.call(call).await?.outcome.into_value()?;
        if let Ok(value) = V::deserialize(&value) {
            return Ok(value);
        }
        match value {
            Value::Object(mut object) if object.len() == 1 && object.contains_key("result") => {
                decode(object["result"].take())
            }
            value => decode(value),
        }
    }

    /// Sends a request that may be repeated.
    async fn request(
        &self,
        request: ClientRequest,
        limits: RetryLimits,
    ) -> Result<ServerResult, ClientError> {
        let mut attempts = Attempts::new(limits);
        loop {
            match self.attempt(request.clone(), attempts.begin()).await {
                Ok(result) => return Ok(result),
                Err(failed) if attempts.wait_for_next(failed.advice).await => {}
                Err(failed) => return Err(failed.error),
            }
        }
    }
}

/// Returns the params of a call, if MCP can carry it.
fn params_of(call: &CallRequest, call_id: &str) -> Result<CallToolRequestParams, ClientError> {
    let has_context = call.user_id.is_some() || call.trace_id.is_some();
    if has_context || !call.tokens.is_empty() || !call.secrets.is_empty() {
        let text = "MCP calls cannot carry a user id, tokens, secrets or a trace id: the server \
                    takes the user from the credentials, and has a store for secrets";
        return Err(ClientError::Unsupported(text));
    }
    let Value::Object(arguments) = &call.input else {
        let text = "the input of an MCP call must be an object";
        return Err(ClientError::Unsupported(text));
    };
    let mut meta = MetaObject::new();
    meta.0.insert(CALL_ID.to_owned(), call_id.into());
    let mut params = CallToolRequestParams::new(call.tool_id.clone());
    params.meta = Some(RequestMetaObject(meta));
    params.arguments = Some(arguments.clone());
    if !call.input_responses.is_empty() {
        let responses = call.input_responses.iter();
        let responses = responses.map(|(key, it)| (key.clone(), it.encode()));
        params.input_responses = Some(responses.collect());
    }
    let state = call.request_state.as_ref();
    params.request_state = state.map(|it| it.expose().to_owned());
    Ok(params)
}
