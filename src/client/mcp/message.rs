//! JSON-RPC messages: the requests, and the responses to them.

use http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::revision::McpRevision;
use crate::{
    client::{
        ClientError,
        http::{LONGEST_MESSAGE, ReceivedResponse},
    },
    payload::JsonObject,
    text::clipped,
};

/// A header is missing, or it disagrees with the body (2026-07-28, Transports).
pub(super) const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client does not have (2026-07-28, Error Codes).
pub(super) const MISSING_CAPABILITY: i64 = -32021;
/// The server does not speak the revision (2026-07-28, Versioning).
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// The key of the `call_id` in `_meta`; MCP does not define one.
pub(super) const CALL_ID: &str = "lambda-tools/call-id";

/// A request, or a notification.
pub(super) struct RpcRequest<'a> {
    pub(super) method: &'static str,
    pub(super) params: JsonObject,
    /// The name of the called tool.
    pub(super) tool: Option<&'a str>,
    pub(super) call_id: Option<&'a str>,
    /// The headers that repeat some of the tool's arguments.
    pub(super) headers: HeaderMap,
}

#[derive(Serialize)]
struct Message<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
struct Params<'a> {
    #[serde(flatten)]
    params: &'a JsonObject,
    #[serde(rename = "_meta", skip_serializing_if = "JsonObject::is_empty")]
    meta: JsonObject,
}

impl<'a> RpcRequest<'a> {
    pub(super) fn new(method: &'static str, params: JsonObject) -> Self {
        Self {
            method,
            params,
            tool: None,
            call_id: None,
            headers: HeaderMap::new(),
        }
    }

    pub(super) fn call(tool: &'a str, call_id: &'a str, params: JsonObject) -> Self {
        Self {
            tool: Some(tool),
            call_id: Some(call_id),
            ..Self::new("tools/call", params)
        }
    }

    /// The body; without an id, that of a notification.
    pub(super) fn encode(&self, id: Option<u64>, revision: Option<McpRevision>) -> Vec<u8> {
        let mut meta = JsonObject::new();
        if revision.is_some_and(McpRevision::is_modern) {
            let mut add =
                |key: &str, value| meta.insert(format!("io.modelcontextprotocol/{key}"), value);
            add("protocolVersion", json!(revision.map(McpRevision::as_str)));
            add("clientInfo", client_info());
            // Requests for input are returned to the program.
            add(
                "clientCapabilities",
                json!({"elicitation": {"form": {}, "url": {}}}),
            );
        }
        if let Some(call_id) = self.call_id {
            meta.insert(CALL_ID.to_owned(), call_id.into());
        }
        let message = Message {
            jsonrpc: "2.0",
            id,
            method: self.method,
            params: Params {
                params: &self.params,
                meta,
            },
        };
        serde_json::to_vec(&message).expect("JSON values can be serialized as JSON")
    }
}

/// The client's name and version, for display only.
pub(super) fn client_info() -> Value {
    json!({"name": "lambda_tools", "version": env!("CARGO_PKG_VERSION")})
}

/// The response to a request.
#[derive(Debug)]
pub(super) enum RpcAnswer {
    Result(JsonObject),
    Error(RpcError),
}

impl RpcAnswer {
    /// Redacts the client's credentials in errors and in requests for input.
    pub(super) fn without_credentials(self, response: &ReceivedResponse) -> Self {
        match self {
            Self::Error(mut error) => {
                error.message = response.redacted(&error.message);
                Self::Error(error)
            }
            Self::Result(mut result)
                if result.get("isError").is_some_and(|it| it == true)
                    || result
                        .get("resultType")
                        .is_some_and(|it| it == "input_required") =>
            {
                // The server needs its state unchanged; it is never printed.
                let state = result.swap_remove_entry("requestState");
                let redacted = response.redacted_json(&result.into());
                let mut result = redacted.as_object().cloned().unwrap_or_default();
                result.extend(state);
                Self::Result(result)
            }
            result @ Self::Result(_) => result,
        }
    }
}

/// JSON-RPC 2.0, section 5.1.
#[derive(Debug)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Value,
}

impl RpcError {
    pub(super) fn into_client_error(self) -> ClientError {
        ClientError::Rejected {
            code: self.code,
            message: clipped(&self.message, LONGEST_MESSAGE).into_owned(),
        }
    }
}

/// True for a response to the request with this id. An error may have no id: the server could not
/// read it.
pub(super) fn answers(message: &Value, id: u64) -> bool {
    let its_id = &message["id"];
    if message["error"].is_object() {
        return its_id.is_null() || *its_id == id;
    }
    message.get("result").is_some() && *its_id == id
}

/// Reads the response to the request with this id.
pub(super) fn answer_in(mut message: Value, id: u64) -> Result<RpcAnswer, ClientError> {
    let unreadable = |text: &str| Err(ClientError::Unreadable(text.to_owned()));
    if !answers(&message, id) {
        return unreadable("it is not a JSON-RPC response to this request");
    }
    if let Value::Object(mut error) = message["error"].take() {
        return Ok(RpcAnswer::Error(RpcError {
            code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
            message: error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("no message")
                .to_owned(),
            data: error.swap_remove("data").unwrap_or_default(),
        }));
    }
    match message["result"].take() {
        Value::Object(result) => Ok(RpcAnswer::Result(result)),
        _ => unreadable("its result is not an object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_belongs_to_its_request() {
        for (message, expected) in [
            (json!({"id": 7, "result": {}}), true),
            (json!({"id": 7, "error": {"code": -1}}), true),
            (json!({"id": null, "error": {}}), true),
            (json!({"error": {"message": 5}}), true),
            (json!({"id": 8, "result": {}}), false),
            (json!({"id": "7", "result": {}}), false),
            (json!({"result": {}}), false),
            (json!({"id": 7, "method": "ping"}), false),
            (json!({"id": 7, "result": []}), false),
            (json!({"id": 7, "error": "no"}), false),
            (json!([{"id": 7, "result": {}}]), false),
            (json!(null), false),
        ] {
            assert_eq!(answer_in(message.clone(), 7).is_ok(), expected, "{message}");
        }
    }

    #[test]
    fn only_modern_requests_carry_their_revision() {
        let request = RpcRequest::call("A_B", "id-1", JsonObject::new());
        let meta = |revision| {
            let body: Value = serde_json::from_slice(&request.encode(Some(1), revision)).unwrap();
            body["params"]["_meta"].clone()
        };
        let call_id = json!({CALL_ID: "id-1"});
        assert_eq!(meta(None), call_id);
        assert_eq!(meta(Some(McpRevision::V2025_11_25)), call_id);
        let modern = meta(Some(McpRevision::V2026_07_28));
        assert_eq!(
            modern["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(modern[CALL_ID], "id-1");
        let notification = RpcRequest::new("notifications/initialized", JsonObject::new());
        let body = notification.encode(None, Some(McpRevision::V2025_11_25));
        let expected = r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#;
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }
}
