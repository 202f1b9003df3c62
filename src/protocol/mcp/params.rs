//! The params that several methods have: a page of a list, arguments, and the responses of users.

use serde_json::{Value, json};

use super::{
    McpCodec,
    catalogue::pages,
    elicitation::Elicitation,
    format::McpFormat,
    transport::{CAPABILITIES, ErrorResponse},
};
use crate::protocol::codec::{EncodedRequest, Operation};

/// Decodes the params of a list.
pub(super) fn list(
    request: &EncodedRequest<'_>,
    codec: &McpCodec,
    format: &mut McpFormat,
    params: &Value,
) -> Result<Operation, ErrorResponse> {
    let cursor = &params["cursor"];
    if !cursor.is_null() {
        let tools = request.app.listed_tools(None, None);
        let pages = pages(&codec.pages, &tools, format.list);
        let page = cursor.as_str().and_then(|it| it.parse().ok());
        let Some(page) = page.filter(|page| *page > 0 && *page < pages.len()) else {
            let detail = "'cursor' was not issued by this server.";
            return Err(ErrorResponse::invalid_params(detail));
        };
        format.page = page;
    }
    Ok(Operation::List)
}

/// Takes a field, and leaves `null` in its place.
pub(super) fn taken(params: &mut Value, name: &str) -> Value {
    params.get_mut(name).map(Value::take).unwrap_or_default()
}

/// Takes the arguments of a call.
#[inline]
pub(super) fn arguments(params: &mut Value) -> Result<Value, ErrorResponse> {
    match taken(params, "arguments") {
        Value::Null => Ok(json!({})),
        input @ Value::Object(_) => Ok(input),
        _ => Err(ErrorResponse::invalid_params(
            "'arguments' must be an object.",
        )),
    }
}

/// Reads what the client can ask its user, and the user's responses.
#[inline]
pub(super) fn elicit(
    request: &EncodedRequest<'_>,
    format: &mut McpFormat,
    params: &mut Value,
    meta: &Value,
    call: (&str, &Value),
) -> Result<(), ErrorResponse> {
    if format.is_modern() {
        let elicitation = Elicitation::of(&meta[CAPABILITIES], params, call, request.max_values);
        format.elicitation = elicitation.map_err(ErrorResponse::invalid_params)?;
    }
    Ok(())
}
