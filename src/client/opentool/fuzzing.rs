//! Encoding of calls and decoding of responses, for the fuzz targets.

use http::StatusCode;

use super::{FunctionCall, OpenToolError, ToolReturn, tool_return};
use crate::client::response::received;

/// The body of a call.
pub(crate) fn encoded_call(call: &FunctionCall) -> Vec<u8> {
    call.encode().into()
}

/// The reply to the call `id-1`.
pub(crate) fn reply_in(status: StatusCode, body: &[u8]) -> Result<ToolReturn, OpenToolError> {
    tool_return(&received(status, body), "id-1")
}
