//! A client for OpenTool 1.0.0, with the specification's types.
//!
//! It never retries: the protocol does not say which servers recognize a repeated call. The five
//! exceptions in part 6 of the specification are these errors:
//!
//! | exception | [`ClientError`] |
//! | --- | --- |
//! | `ResponseNullException` | [`Unreadable`](ClientError::Unreadable) |
//! | `ErrorNullException` | [`Status`](ClientError::Status) |
//! | `OpenToolServerUnauthorizedException` | [`Unauthorized`](ClientError::Unauthorized) |
//! | `OpenToolServerNoAccessException` | [`Unreachable`](ClientError::Unreachable), 404: `Status` |
//! | `OpenToolServerCallException` | [`Call`](ClientError::Call) |

use http::StatusCode;
use lambda_tools_core::wire::jsonrpc::VERSION;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    ClientError, ClientOptions,
    http::{ClientRequest, HttpClient, ReceivedResponse, decode},
};

/// A client for one server.
///
/// ```no_run
/// # mod lambda_tools { pub use lambda_tools_client as client; }
/// # async fn run() -> Result<(), lambda_tools::client::ClientError> {
/// use lambda_tools::client::{ClientOptions, opentool::{OpenToolClient, FunctionCall}};
///
/// let options = ClientOptions::default().api_key("my-api-key");
/// let client = OpenToolClient::new("https://tools.example", options)?;
/// let call = FunctionCall {
///     id: "call-1".to_owned(),
///     name: "Calculator_Add".to_owned(),
///     arguments: [("a".to_owned(), 10.into()), ("b".to_owned(), 5.into())].into_iter().collect(),
/// };
/// println!("{:?}", client.call(&call).await?.result);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenToolClient {
    http: HttpClient,
}

/// A function call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The unique id of the call, repeated in the response. Servers may treat calls with the same id as
    /// the same call.
    pub id: String,
    /// The function's name, such as `Calculator_Add`.
    pub name: String,
    /// The arguments by name.
    #[serde(default)]
    pub arguments: Map<String, Value>,
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
    pub fn new(base_url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let mut http = HttpClient::new(base_url, options)?;
        let path = http.base.path().trim_end_matches('/');
        if !path.ends_with("/opentool") {
            http.base = http.url("opentool");
        }
        Ok(Self { http })
    }

    /// Calls a function, with `POST /call`.
    ///
    /// # Errors
    /// The server did not respond with a result. An error that it reports is [`ClientError::Call`].
    pub async fn call(&self, call: &FunctionCall) -> Result<ToolReturn, ClientError> {
        let body = json!({
            "jsonrpc": VERSION,
            "method": call.name,
            "params": call.arguments,
            "id": call.id,
        });
        let request = ClientRequest {
            path: "call",
            body: Some(body.to_string()),
            ..ClientRequest::default()
        };
        let http = &self.http;
        let response = http.exchange(&request, http.options.timeout).await?;
        tool_return(&response, &call.id)
    }

    /// Returns the document that lists the server's functions, as the server sent it in response to
    /// `GET /load`; `None` if it does not list them.
    ///
    /// # Errors
    /// The server did not respond with a document.
    pub async fn load(&self) -> Result<Option<Map<String, Value>>, ClientError> {
        let request = ClientRequest {
            path: "load",
            ..ClientRequest::default()
        };
        let http = &self.http;
        let response = http.exchange(&request, http.options.timeout).await?;
        response.require_ok()?;
        if response.body.is_empty() {
            return Ok(None);
        }
        let document: Option<Map<_, _>> = decode(response.json()?)?;
        Ok(document.filter(|it| !it.is_empty()))
    }
}

fn tool_return(response: &ReceivedResponse, id: &str) -> Result<ToolReturn, ClientError> {
    // Some servers send errors with the status 200, others with that of the error.
    let reply = response.json();
    let error = reply.as_ref().ok().map(|it| &it["error"]);
    let is_error = |it: &&Value| it.is_object() && response.status != StatusCode::UNAUTHORIZED;
    if let Some(error) = error.filter(is_error) {
        let message = error["message"].as_str().unwrap_or("The call failed");
        return Err(ClientError::Call {
            code: error["code"].as_i64(),
            message: response.redacted(message),
        });
    }
    response.require_ok()?;
    let mut reply = reply?;
    match reply.get_mut("result").map(Value::take) {
        Some(Value::Object(result)) if reply["id"] == id => Ok(ToolReturn {
            id: id.to_owned(),
            result,
        }),
        _ => Err(ClientError::Unreadable(
            "it has no result of this call".into(),
        )),
    }
}
