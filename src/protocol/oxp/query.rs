//! The query of `GET /tools`: the API of a model that the list is for.
//!
//! Not part of OXP 1.0, whose lists have one format.

use percent_encoding::percent_decode_str;

use super::{form::ListForm, request_error::RequestError};
#[cfg(feature = "models")]
use crate::models::ModelApi;

/// The form of the list that the query asks for; `None` for OXP's. Other parameters than `for` and
/// `strict` have no meaning.
pub(super) fn form_in(query: Option<&str>) -> Result<Option<ListForm>, RequestError> {
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
    form_for(name.as_deref(), strict.as_deref())
}

#[cfg(feature = "models")]
fn form_for(name: Option<&str>, strict: Option<&str>) -> Result<Option<ListForm>, RequestError> {
    let is_strict = match strict {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(invalid("'strict' must be 'true' or 'false'.")),
    };
    let api = match (name, strict) {
        (None, None) => return Ok(None),
        (None, Some(_)) => Err("'strict' needs 'for=openai' or 'for=openai-responses'."),
        (Some("openai"), _) => Ok(ModelApi::OpenAi { strict: is_strict }),
        (Some("openai-responses"), _) => Ok(ModelApi::OpenAiResponses { strict: is_strict }),
        (Some("anthropic"), None) => Ok(ModelApi::Anthropic),
        (Some("gemini"), None) => Ok(ModelApi::Gemini),
        (Some("bedrock"), None) => Ok(ModelApi::Bedrock),
        (Some("anthropic" | "gemini" | "bedrock"), Some(_)) => {
            Err("'strict' is for OpenAI's APIs only.")
        }
        _ => Err("'for' must be one of: openai, openai-responses, anthropic, gemini, bedrock."),
    };
    Ok(Some(ListForm::Model(api.map_err(invalid)?)))
}

#[cfg(not(feature = "models"))]
fn form_for(name: Option<&str>, _: Option<&str>) -> Result<Option<ListForm>, RequestError> {
    match name {
        None => Ok(None),
        Some(_) => Err(invalid(
            "This server was built without the Cargo feature 'models', which adds lists for the \
             APIs of models.",
        )),
    }
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
