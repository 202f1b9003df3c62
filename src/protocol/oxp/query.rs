//! The query of `GET /tools`: the API of a model that the list is for.
//!
//! Not part of OXP 1.0, whose lists have one format.

use percent_encoding::percent_decode_str;

use super::form::ListForm;
use crate::call::rejection::Rejection;
#[cfg(feature = "models")]
use crate::models::ModelApi;

/// The form of the list that the query asks for; `None` for OXP's.
#[cfg(feature = "models")]
pub(super) fn form_in(query: Option<&str>) -> Result<Option<ListForm>, Rejection> {
    Ok(model_api(query)?.map(ListForm::Model))
}

/// The form of the list that the query asks for: OXP's only.
#[cfg(not(feature = "models"))]
pub(super) fn form_in(query: Option<&str>) -> Result<Option<ListForm>, Rejection> {
    for pair in query.unwrap_or_default().split('&') {
        let name = pair.split('=').next().unwrap_or_default();
        if decoded(name)? == "for" {
            return Err(invalid(
                "This server was built without the Cargo feature 'models', which adds lists for \
                 the APIs of models.",
            ));
        }
    }
    Ok(None)
}

/// Reads `for` and `strict`; without `for`, the list is OXP's. Other parameters have no meaning.
#[cfg(feature = "models")]
fn model_api(query: Option<&str>) -> Result<Option<ModelApi>, Rejection> {
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
    let is_strict = match strict.as_deref() {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(invalid("'strict' must be 'true' or 'false'.")),
    };
    let Some(name) = name else {
        return match is_strict {
            None => Ok(None),
            Some(_) => Err(invalid(
                "'strict' needs 'for=openai' or 'for=openai-responses'.",
            )),
        };
    };
    let strict = is_strict.unwrap_or(false);
    let api = match name.as_str() {
        "openai" => return Ok(Some(ModelApi::OpenAi { strict })),
        "openai-responses" => return Ok(Some(ModelApi::OpenAiResponses { strict })),
        "anthropic" => ModelApi::Anthropic,
        "gemini" => ModelApi::Gemini,
        "bedrock" => ModelApi::Bedrock,
        _ => {
            return Err(invalid(
                "'for' must be one of: openai, openai-responses, anthropic, gemini, bedrock.",
            ));
        }
    };
    if is_strict.is_some() {
        return Err(invalid("'strict' is for OpenAI's APIs only."));
    }
    Ok(Some(api))
}

/// Decodes `%20`, and `+` as a space.
fn decoded(text: &str) -> Result<String, Rejection> {
    let text = text.replace('+', " ");
    match percent_decode_str(&text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(invalid("It is not UTF-8.")),
    }
}

fn invalid(detail: &str) -> Rejection {
    Rejection::malformed("The query of the request is invalid", detail)
}
