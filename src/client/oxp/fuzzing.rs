//! Encoding of calls and decoding of responses, for the fuzz targets.

use http::StatusCode;

use super::{CallFormat, list::tools_in};
use crate::{
    ToolDefinition,
    client::{CallReply, CallRequest, ClientError, response::received},
};

/// The body of a call.
pub(crate) fn encoded_call(call: &CallRequest, call_id: &str, format: CallFormat) -> Vec<u8> {
    call.encode(call_id, format)
}

/// The reply to a call.
pub(crate) fn reply_in(status: StatusCode, body: &[u8]) -> Result<CallReply, ClientError> {
    CallReply::of(&received(status, body), "id-1")
}

/// The list of tools.
pub(crate) fn list_in(body: &[u8]) -> Result<Vec<ToolDefinition>, ClientError> {
    tools_in(received(StatusCode::OK, body).json()?)
}
