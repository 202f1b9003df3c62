//! Encoding of calls and reading of responses, for the fuzz targets.

use http::HeaderMap;
use serde_json::{Value, json};

use super::{
    event_stream::EventReader,
    exchange::{RequestContext, headers_of},
    message::{RpcAnswer, RpcRequest, answer_in},
    revision::McpRevision,
    tool::page_in,
};
use crate::{
    client::{CallReply, ClientError, budget::ResponseBudget},
    payload::JsonObject,
};

/// The id of the request that a stream answers.
const ID: u64 = 7;

/// The headers and the body of a call.
pub(crate) fn encoded_call(
    name: &str,
    call_id: Option<&str>,
    arguments: &JsonObject,
    revision: McpRevision,
) -> (HeaderMap, Vec<u8>) {
    let mut params = JsonObject::new();
    params.insert("name".to_owned(), name.into());
    params.insert("arguments".to_owned(), json!(arguments));
    let mut request = RpcRequest::call(name, "", params);
    request.call_id = call_id;
    let revision = Some(revision);
    let context = RequestContext {
        revision,
        session: None,
    };
    (
        headers_of(context, &request),
        request.encode(Some(ID), revision),
    )
}

/// The message in a stream of server-sent events that answers the request 7, if the stream arrives
/// in these pieces.
pub(crate) fn message_in_stream<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Option<Value> {
    let mut reader = EventReader::new(ID, ResponseBudget::new(usize::MAX));
    let mut arrived = Vec::new();
    for piece in pieces {
        arrived.extend_from_slice(piece);
        if reader.read(&arrived) {
            break;
        }
    }
    reader.finish(&arrived)?.ok()
}

/// The reply in a message, read both as the result of a call and as a list of tools.
pub(crate) fn reply_in(message: Value) -> Result<CallReply, ClientError> {
    let answer = answer_in(message, ID)?;
    if let RpcAnswer::Result(result) = &answer {
        for is_modern in [false, true] {
            let _ = page_in(result.clone(), is_modern);
        }
    }
    CallReply::of_answer(answer, "id-1")
}
