//! The query of `GET /tools`: the API of a model that the list is for.
//!
//! Not part of OXP 1.0, whose lists have one format.

use percent_encoding::percent_decode_str;

use super::{format::ListFormat, model_lists::api_for, request_error::RequestError};

/// Returns the format of the list that the query asks for; `None` for OXP's. Other parameters than
/// `for` and `strict` have no meaning.
pub(super) fn format_in(query: Option<&str>) -> Result<Option<ListFormat>, RequestError> {
    let (mut name, mut strict) = (None, None);
    for pair in query.unwrap_or_default().split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let slot = match &*decoded(key)? {
            "for" => &mut name,
            "strict" => &mut strict,
            _ => continue,
        };
        if slot.replace(decoded(value)?).is_some() {
            return Err(invalid("'for' and 'strict' may occur only once."));
        }
    }
    let api = api_for(name.as_deref(), strict.as_deref()).map_err(invalid)?;
    Ok(api.map(ListFormat::Model))
}

/// Decodes `%20`, and `+` as a space.
fn decoded(text: &str) -> Result<String, RequestError> {
    let text = text.replace('+', " ");
    match percent_decode_str(&text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(invalid("It is not UTF-8.")),
    }
}

fn invalid(detail: &str) -> RequestError {
    RequestError::malformed("The query of the request is invalid", detail)
}
