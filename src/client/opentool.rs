//! A client for OpenTool 1.0.0, as part 4 of its text describes one.
//!
//! Its answers are the text's types, its errors the five of part 6. It asks once: the protocol does
//! not say which servers recognize a repeated call.

mod document;
mod error;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    JwtSigner,
    credentials::ClientCredentials,
    http::{HttpClient, ReceivedResponse, decoded},
};
use crate::Secret;

pub use document::{
    DocumentInfo, FunctionModel, OpenToolDocument, Parameter, ReturnValue, ServerUrl, ValueSchema,
};
pub use error::OpenToolError;

/// A client of one server.
///
/// ```no_run
/// # async fn run() -> Result<(), lambda_tools::client::opentool::OpenToolError> {
/// use lambda_tools::client::opentool::{OpenToolClient, FunctionCall};
/// use serde_json::json;
///
/// let client = OpenToolClient::new("https://tools.example")?.api_key("key-of-mine");
/// let arguments = json!({"a": 10, "b": 5});
/// let call = FunctionCall::new("call-1", "Calculator_Add", arguments.as_object().unwrap().clone());
/// println!("{:?}", client.call(&call).await?.result);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenToolClient {
    http: HttpClient,
    timeout: Duration,
}

/// The version of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerVersion {
    /// `x.y.z`.
    pub version: String,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FunctionCall {
    /// The unique id of the call, which its answer has as well.
    pub id: String,
    /// The function's name, such as `Calculator_Add`.
    pub name: String,
    /// The arguments by name.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

impl FunctionCall {
    /// A call with this id. Servers may take the same id for the same call.
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
}

/// What a function gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolReturn {
    /// The id of the call.
    pub id: String,
    /// The result.
    pub result: Map<String, Value>,
}

impl OpenToolClient {
    /// A client for the server at this URL, such as `https://tools.example`; `/opentool` is added
    /// unless it is there.
    ///
    /// # Errors
    /// A URL that is none, or that has credentials in it.
    pub fn new(base_url: &str) -> Result<Self, OpenToolError> {
        Ok(Self {
            http: HttpClient::new(base_url)
                .map_err(OpenToolError::of)?
                .below("opentool"),
            timeout: Duration::from_secs(30),
        })
    }

    /// Shows an API key, as `Authorization: Bearer`.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<Secret>) -> Self {
        self.http.credentials = ClientCredentials::ApiKey(key.into(), None);
        self
    }

    /// Shows tokens that it signs itself.
    #[must_use]
    pub fn jwt(mut self, jwt: JwtSigner) -> Self {
        self.http.credentials = ClientCredentials::Jwt(jwt);
        self
    }

    /// Sets how long an answer may take: 30 seconds unless this says otherwise.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Sets how many bytes of an answer are read at most, 16 MiB otherwise.
    #[must_use]
    pub fn largest_answer(mut self, bytes: usize) -> Self {
        self.http.largest = bytes;
        self
    }

    /// `GET /version`: the server's version.
    ///
    /// # Errors
    /// One of the five.
    pub async fn version(&self) -> Result<ServerVersion, OpenToolError> {
        let received = self.get("version").await?;
        let code = i64::from(received.status.as_u16());
        if received.is_empty() {
            return Err(OpenToolError::ResponseNull { code });
        }
        received.decoded().map_err(OpenToolError::of)
    }

    /// `POST /call`: calls a function.
    ///
    /// # Errors
    /// One of the five; what the server says went wrong is [`OpenToolError::Call`].
    pub async fn call(&self, call: &FunctionCall) -> Result<ToolReturn, OpenToolError> {
        let body = json!({
            "jsonrpc": "2.0",
            "method": call.name,
            "params": call.arguments,
            "id": call.id,
        });
        let body = Bytes::from(body.to_string());
        let url = self.http.url("call");
        let sent = self.http.post(url, HeaderMap::new(), body, self.timeout);
        let received = sent.await.map_err(OpenToolError::of)?;
        returned(&received, &call.id)
    }

    /// `GET /load`: what there is to call; `None` where the server does not say.
    ///
    /// # Errors
    /// One of the five.
    pub async fn load(&self) -> Result<Option<OpenToolDocument>, OpenToolError> {
        let received = self.get("load").await?;
        if received.is_empty() {
            return Ok(None);
        }
        let document = received.json().map_err(OpenToolError::of)?;
        if document == json!({}) {
            return Ok(None);
        }
        decoded(document).map(Some).map_err(OpenToolError::of)
    }

    async fn get(&self, path: &str) -> Result<ReceivedResponse, OpenToolError> {
        let url = self.http.url(path);
        let sent = self.http.get(url, HeaderMap::new(), self.timeout);
        let received = sent.await.map_err(OpenToolError::of)?;
        match received.status {
            StatusCode::OK => Ok(received),
            _ => Err(refused(&received)),
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
    fn said(self) -> OpenToolError {
        let message = self.message.unwrap_or_else(|| "The call failed".to_owned());
        OpenToolError::call(self.code, message)
    }
}

fn returned(received: &ReceivedResponse, id: &str) -> Result<ToolReturn, OpenToolError> {
    if received.status != StatusCode::OK {
        return Err(refused(received));
    }
    let code = i64::from(received.status.as_u16());
    if received.is_empty() {
        return Err(OpenToolError::ResponseNull { code });
    }
    let answer: RpcReply = received.decoded().map_err(OpenToolError::of)?;
    match (answer.error, answer.result) {
        (Some(error), _) => Err(error.said()),
        (None, None) => Err(OpenToolError::ResponseNull { code }),
        (None, Some(Value::Object(result))) if answer.id == id => Ok(ToolReturn {
            id: id.to_owned(),
            result,
        }),
        (None, Some(Value::Object(_))) => {
            let text = "The answer has the id of another call.";
            Err(OpenToolError::call(None, text))
        }
        (None, Some(_)) => Err(OpenToolError::call(None, "The result is no JSON object.")),
    }
}

/// An answer that is not a 200.
fn refused(received: &ReceivedResponse) -> OpenToolError {
    let code = i64::from(received.status.as_u16());
    match received.status {
        StatusCode::UNAUTHORIZED => return OpenToolError::Unauthorized,
        StatusCode::NOT_FOUND => return OpenToolError::NoAccess { cause: None },
        _ => {}
    }
    let body = received.json().unwrap_or_default();
    match serde_json::from_value::<RpcReplyError>(body["error"].clone()) {
        Ok(error) => error.said(),
        Err(_) if received.is_empty() => OpenToolError::ResponseNull { code },
        Err(_) => OpenToolError::ErrorNull { code },
    }
}
