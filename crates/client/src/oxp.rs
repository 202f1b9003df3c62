//! A client for OXP 1.0 in both of its dialects and for Open Tool Calling 1.0.
//!
//! As the specifications require of clients, it uses one `call_id` for all attempts at a call,
//! retries where the server says that this may help, and returns every kind of response as data.

mod call;
mod outcome;

use http::{HeaderMap, HeaderName, HeaderValue};
use lambda_tools_core::{ToolDefinition, wire};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    ClientError, ClientOptions,
    http::{ClientRequest, HttpClient, ReceivedResponse, decode},
};

pub use call::{CallRequest, Dialect};
pub use outcome::{
    AuthorizationChallenge, CallOutcome, CallReply, InvalidInput, MissingRequirements, ServerError,
    ToolError,
};

const API_KEY: HeaderName = HeaderName::from_static(wire::oxp::API_KEY);
const VERSION: HeaderName = HeaderName::from_static(wire::oxp::VERSION_HEADER);

/// A client for one server.
///
/// The client retries after failures that may be retried (after the time that the server names),
/// network errors, and the statuses 408, 429 and 5xx.
#[derive(Clone, Debug)]
pub struct OxpClient {
    http: HttpClient,
    dialect: Dialect,
}

impl OxpClient {
    /// Creates a client for the server at this URL, such as `https://tools.example`.
    ///
    /// # Errors
    /// The URL is invalid or contains credentials.
    pub fn new(base_url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let mut http = HttpClient::new(base_url, options)?;
        http.key_header = Some(API_KEY);
        let dialect = Dialect::default();
        Ok(Self { http, dialect })
    }

    /// Sets the dialect of calls; responses are understood in every dialect.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Returns all tools, from a `GET /tools` in any dialect. Input schemas are returned without
    /// the `parameters` wrapper.
    ///
    /// # Errors
    /// No attempt returned a list.
    pub async fn tools(&self) -> Result<Vec<ToolDefinition>, ClientError> {
        let request = ClientRequest {
            path: "tools",
            headers: self.version(),
            ..ClientRequest::default()
        };
        let read = |response: &ReceivedResponse| (tools_in(response), None);
        self.http.exchange_with_retries(&request, read).await
    }

    /// Runs one tool, with `POST /tools/call`. All attempts have the same `call_id`, so that a
    /// server that follows the specification runs the tool once.
    ///
    /// # Errors
    /// No attempt got a response about the call. Any such response, even a rejection, is returned
    /// as a [`CallReply`].
    pub async fn call(&self, call: &CallRequest) -> Result<CallReply, ClientError> {
        let call_id = call.call_id.clone();
        let call_id = call_id.unwrap_or_else(|| Uuid::new_v4().to_string());
        let request = ClientRequest {
            path: "tools/call",
            headers: self.version(),
            body: Some(call.encode(&call_id, self.dialect)),
            secrets: call.confidential(),
        };
        let read = |response: &ReceivedResponse| {
            let reply = CallReply::of(response, &call_id);
            let advice = reply.as_ref().ok().and_then(|it| it.outcome.advice());
            (reply, advice)
        };
        self.http.exchange_with_retries(&request, read).await
    }

    fn version(&self) -> HeaderMap {
        let value = HeaderValue::from_static(wire::oxp::VERSION);
        match self.dialect {
            Dialect::Header => HeaderMap::from_iter([(VERSION, value)]),
            Dialect::Schema | Dialect::Otc => HeaderMap::new(),
        }
    }
}

#[derive(Deserialize)]
struct ToolListBody {
    items: Option<Vec<ToolDefinition>>,
    tools: Option<Vec<ToolDefinition>>,
}

/// Reads OXP's `items` or OTC's `tools`; if a server sends both, they are the same list.
fn tools_in(response: &ReceivedResponse) -> Result<Vec<ToolDefinition>, ClientError> {
    response.require_ok()?;
    let list: ToolListBody = decode(response.json()?)?;
    let missing = || ClientError::Unreadable("it has neither 'items' nor 'tools'".to_owned());
    let mut definitions = list.items.or(list.tools).ok_or_else(missing)?;
    for definition in &mut definitions {
        unwrap_parameters(&mut definition.input_schema);
    }
    Ok(definitions)
}

/// Removes a wrapper: two of the dialects send the schema as `{"parameters": …}`, which is not a
/// JSON Schema keyword.
fn unwrap_parameters(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut()
        && object.len() == 1
        && let Some(parameters) = object.get_mut("parameters")
    {
        *schema = parameters.take();
    }
}
