//! Encoding of calls and reading of responses, for the fuzz targets.

use http::StatusCode;
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde_json::{Value, json};

use super::{
    McpTool, params_of,
    transport::{answer_in, related},
};
use crate::{
    client::{CallReply, CallRequest, ClientError, response::received},
    json::JsonObject,
};

/// The body of a call before 2026-07-28.
pub(crate) fn encoded_call(name: &str, call_id: Option<&str>, arguments: &JsonObject) -> Vec<u8> {
    let call = CallRequest::new(name).input(arguments.clone());
    let params = params_of(&call, call_id.unwrap_or_default());
    let mut params = params.expect("MCP can carry the call");
    params.meta = params.meta.filter(|_| call_id.is_some());
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    body.to_string().into_bytes()
}

/// Reads a message as the response to the request 7.
pub(crate) fn read(message: Value) -> Result<(), ClientError> {
    let message = related(message, &json!(7))?;
    let message: ServerJsonRpcMessage = answer_in(message, &received(StatusCode::OK, b""))?;
    let JsonRpcMessage::Response(response) = message else {
        return Ok(());
    };
    if let ServerResult::ListToolsResult(page) = response.result {
        page.tools.into_iter().map(McpTool::of).for_each(drop);
        return Ok(());
    }
    CallReply::of_result(response.result, "id-1").map(drop)
}
