//! A client for OpenTool 1.0.0, as described in part 4 of the specification.
//!
//! It returns the specification's types, and the five errors of part 6. It never retries: the
//! protocol does not say which servers recognize a repeated call.

mod error;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use lambda_tools_core::wire::jsonrpc::VERSION;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{ClientOptions, http::HttpClient, response::ReceivedResponse};

pub use error::OpenToolError;

/// A client for one server.
///
/// ```no_run
/// # mod lambda_tools { pub use lambda_tools_client as client; }
/// # async fn run() -> Result<(), lambda_tools::client::opentool::OpenToolError> {
/// use lambda_tools::client::{ClientOptions, opentool::{OpenToolClient, FunctionCall}};
/// use serde_json::json;
///
/// let options = ClientOptions::default().api_key("my-api-key");
/// let client = OpenToolClient::new("https://tools.example", options)?;
/// let arguments = json!({"a": 10, "b": 5});
/// let call = FunctionCall::new("call-1", "Calculator_Add", arguments.as_object().unwrap().clone());
/// println!("{:?}", client.call(&call).await?.result);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenToolClient {
    http: HttpClient,
}

/// The version of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerVersion {
    /// `x.y.z`.
    pub version: String,
}

/// A function call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FunctionCall {
    /// The unique id of the call, repeated in the response.
    pub id: String,
    /// The function's name, such as `Calculator_Add`.
    pub name: String,
    /// The arguments by name.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

impl FunctionCall {
    /// Creates a call with this id. Servers may treat calls with the same id as the same call.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: Map<String, Value>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments,
        }
    }

    /// Encodes the body of the request.
    fn encode(&self) -> Bytes {
        let body = json!({
            "jsonrpc": VERSION,
            "method": self.name,
            "params": self.arguments,
            "id": self.id,
        });
        Bytes::from(body.to_string())
    }
}

/// The result of a function call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolReturn {
    /// The id of the call.
    pub id: String,
    /// The result.
    pub result: Map<String, Value>,
}

impl OpenToolClient {
    /// Creates a client for the server at this URL, such as `https://tools.example`; `/opentool` is
    /// added unless the URL ends with it.
    ///
    /// # Errors
    /// The URL is invalid or contains credentials.
    pub fn new(base_url: &str, options: ClientOptions) -> Result<Self, OpenToolError> {
        let http = HttpClient::new(base_url, options).map_err(OpenToolError::of)?;
        let http = http.with_suffix("opentool");
        Ok(Self { http })
    }

    /// Returns the server's version, from `GET /version`.
    ///
    /// # Errors
    /// Any [`OpenToolError`].
    pub async fn version(&self) -> Result<ServerVersion, OpenToolError> {
        let response = self.get("version").await?;
        let code = i64::from(response.status.as_u16());
        if response.is_empty() {
            return Err(OpenToolError::ResponseNull { code });
        }
        response.decode().map_err(OpenToolError::of)
    }

    /// Calls a function, with `POST /call`.
    ///
    /// # Errors
    /// Any [`OpenToolError`]; an error that the server reports is [`OpenToolError::Call`].
    pub async fn call(&self, call: &FunctionCall) -> Result<ToolReturn, OpenToolError> {
        let url = self.http.url("call");
        let timeout = self.http.options.limits.timeout;
        let request = (Method::POST, url, HeaderMap::new(), call.encode());
        let response = self.http.exchange(request, timeout).await;
        let response = response.map_err(OpenToolError::of)?;
        tool_return(&response, &call.id)
    }

    /// Returns the document that lists the server's functions, as the server sent it in response to
    /// `GET /load`; `None` if it does not list them.
    ///
    /// # Errors
    /// Any [`OpenToolError`].
    pub async fn load(&self) -> Result<Option<Map<String, Value>>, OpenToolError> {
        let response = self.get("load").await?;
        if response.is_empty() {
            return Ok(None);
        }
        let document: Map<_, _> = response.decode().map_err(OpenToolError::of)?;
        Ok(Some(document).filter(|it| !it.is_empty()))
    }

    async fn get(&self, path: &str) -> Result<ReceivedResponse, OpenToolError> {
        let url = self.http.url(path);
        let timeout = self.http.options.limits.timeout;
        let response = self.http.get(url, HeaderMap::new(), timeout).await;
        let response = response.map_err(OpenToolError::of)?;
        match response.status {
            StatusCode::OK => Ok(response),
            _ => Err(status_error(&response)),
        }
    }
}

#[derive(Deserialize)]
struct RpcReply {
    result: Option<Value>,
    error: Option<RpcReplyError>,
    #[serde(default)]
    id: Value,
}

#[derive(Deserialize)]
struct RpcReplyError {
    code: Option<i64>,
    message: Option<String>,
}

impl RpcReplyError {
    fn into_error(self, response: &ReceivedResponse) -> OpenToolError {
        let message = self.message.as_deref().unwrap_or("The call failed");
        OpenToolError::call(self.code, response.redacted(message))
    }
}

fn tool_return(response: &ReceivedResponse, id: &str) -> Result<ToolReturn, OpenToolError> {
    if response.status != StatusCode::OK {
        return Err(status_error(response));
    }
    let code = i64::from(response.status.as_u16());
    if response.is_empty() {
        return Err(OpenToolError::ResponseNull { code });
    }
    let reply: RpcReply = response.decode().map_err(OpenToolError::of)?;
    match (reply.error, reply.result) {
        (Some(error), _) => Err(error.into_error(response)),
        (None, None) => Err(OpenToolError::ResponseNull { code }),
        (None, Some(Value::Object(result))) if reply.id == id => Ok(ToolReturn {
            id: id.to_owned(),
            result,
        }),
        (None, Some(Value::Object(_))) => {
            let text = "The response has the id of another call.";
            Err(OpenToolError::call(None, text))
        }
        (None, Some(_)) => {
            let text = "The result is not a JSON object.";
            Err(OpenToolError::call(None, text))
        }
    }
}

/// Returns the error for any status but 200.
fn status_error(response: &ReceivedResponse) -> OpenToolError {
    let code = i64::from(response.status.as_u16());
    match response.status {
        StatusCode::UNAUTHORIZED => return OpenToolError::Unauthorized,
        StatusCode::NOT_FOUND => return OpenToolError::NoAccess { cause: None },
        _ => {}
    }
    let body = response.json().unwrap_or_default();
    match serde_json::from_value::<RpcReplyError>(body["error"].clone()) {
        Ok(error) => error.into_error(response),
        Err(_) if response.is_empty() => OpenToolError::ResponseNull { code },
        Err(_) => OpenToolError::ErrorNull { code },
    }
}
