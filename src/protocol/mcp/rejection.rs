//! Encoding of rejections: as a result that a model can act on, or as a JSON-RPC error.
//!
//! Clients show JSON-RPC errors to nobody, so only a request that a model cannot fix gets one.
//! Reference: 2026-07-28 and 2025-11-25, Tools, Error Handling.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;

use super::{
    format::McpFormat,
    response::{CallResult, Meta, encode, encode_error, in_words},
    tasks,
    transport::ErrorResponse,
};
use crate::{
    call::rejection::{Rejection, SecretPlace, UnmetRequirements},
    json::JsonObject,
    protocol::{
        jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError},
        refusal::Refusal,
        sign_in,
        wording::Wording,
    },
    text::whole_milliseconds,
    wire::mcp::{PARAMETER_ERRORS, RETRY_AFTER},
};

/// The text for a gateway that passes on no valid token: its client cannot send one by itself.
const NO_TOKEN: &str =
    "The user is not signed in: the gateway has passed on no valid token of the user.";

/// Returns the status and the body of a refusal.
pub(super) fn encode_refusal(format: &McpFormat, refusal: &Refusal) -> (StatusCode, Vec<u8>) {
    let error = match error_of(refusal) {
        Ok(error) => error,
        Err(rejection) => return (StatusCode::OK, encode_rejection(format, rejection)),
    };
    if !format.is_bare {
        return (error.status, encode_error(format, &error.error));
    }
    let mut text = match refusal {
        Refusal::Unauthenticated(..) => NO_TOKEN.to_owned(),
        _ => error.error.message,
    };
    if let Some(seconds) = refusal.retry_after() {
        let wait = in_words(Duration::from_secs(seconds));
        text = format!("{text} Try again in {wait}.");
    }
    let result = CallResult::error(format, &text, Meta::default());
    (StatusCode::OK, encode(format, &result))
}

fn encode_rejection(format: &McpFormat, rejection: &Rejection) -> Vec<u8> {
    let mut meta = Meta::of(format);
    if let Rejection::Missing(missing) = rejection
        && let Some(mut result) = format.elicitation.challenge(missing)
    {
        result["_meta"] = json!(meta);
        return encode(format, &result);
    }
    let mut text = text_of_rejection(format, rejection);
    if let Some(wait) = rejection.retry_after() {
        // The text of a quota says it.
        if rejection.is_temporary() {
            text = format!("{text} Try again in {}.", in_words(wait));
        }
        meta.insert(RETRY_AFTER, whole_milliseconds(wait));
    }
    if format.is_read() {
        let code = match rejection {
            Rejection::InvalidInput(_) => INVALID_PARAMS,
            _ => INTERNAL_ERROR,
        };
        return encode_error(format, &RpcError::new(code, text));
    }
    if let Rejection::InvalidInput(errors) = rejection {
        meta.insert(PARAMETER_ERRORS, json!(errors));
    }
    encode(format, &CallResult::error(format, &text, meta))
}

/// Returns the text of a rejection that a model can act on. Details about the server's
/// configuration are for the log.
fn text_of_rejection(format: &McpFormat, rejection: &Rejection) -> String {
    match rejection {
        Rejection::InvalidInput(errors) => {
            let lines = errors
                .iter()
                .map(|(path, error)| format!("\n- {path}: {error}."));
            format!("The input is invalid:{}", lines.collect::<String>())
        }
        Rejection::Missing(missing) => match format.elicitation.declined(&missing.challenges) {
            Some(provider) => format!(
                "{} cannot be called: the user has declined to authorize '{provider}'.",
                missing.tool
            ),
            None => missing_text(missing, format.is_bare),
        },
        Rejection::CallIdReused => {
            "This call id belongs to another call, which had another input, \
             user or version. Nothing was run; a new call needs a new id."
                .to_owned()
        }
        Rejection::Unprotected(_) | Rejection::Uncounted(_) | Rejection::Unauthorizable(_) => {
            format!("{}.", Wording::rejected(rejection, None).message)
        }
        other => {
            let wording = Wording::rejected(other, None);
            match wording.detail {
                Some(detail) => format!("{}. {detail}", wording.message),
                None => wording.message,
            }
        }
    }
}

/// Returns the JSON-RPC error of a refusal, or the rejection that a model can act on.
fn error_of(refusal: &Refusal) -> Result<ErrorResponse, &Rejection> {
    let wording = || Wording::of(refusal).into_detail();
    let new = |status, code| ErrorResponse::new(status, code, wording());
    Ok(match refusal {
        // Codes outside of JSON-RPC's range are the application's own.
        Refusal::Unauthenticated(_, None) => new(StatusCode::UNAUTHORIZED, 401),
        Refusal::Unauthenticated(_, Some(_)) => {
            let mut data = sign_in_data(refusal);
            data.remove("error");
            new(StatusCode::UNAUTHORIZED, 401).data(data.into())
        }
        Refusal::Undecided(_) => new(StatusCode::SERVICE_UNAVAILABLE, 503),
        Refusal::UnknownKey(_) => new(StatusCode::TOO_MANY_REQUESTS, 429),
        Refusal::TooLarge { .. } => new(StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST),
        Refusal::ForbiddenOrigin => new(StatusCode::FORBIDDEN, INVALID_REQUEST),
        Refusal::Encoded => new(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_REQUEST),
        // The body could not be read.
        Refusal::Invalid { .. } => new(StatusCode::BAD_REQUEST, PARSE_ERROR),
        Refusal::Rejected(rejection, _) => match rejection {
            Rejection::InsufficientScope { .. } => {
                new(StatusCode::FORBIDDEN, 403).data(sign_in_data(refusal).into())
            }
            Rejection::NotAllowed { .. } => new(StatusCode::FORBIDDEN, 403),
            Rejection::Unavailable | Rejection::Busy => new(StatusCode::SERVICE_UNAVAILABLE, 503),
            Rejection::RequiresTask => tasks::unsupported(),
            Rejection::WrongUser(_) => new(StatusCode::BAD_REQUEST, INVALID_REQUEST),
            Rejection::UnknownTool { .. } | Rejection::UnknownVersion { .. } => {
                new(StatusCode::OK, INVALID_PARAMS)
            }
            Rejection::Misdefined { .. } => {
                let message = format!("{}.", Wording::of(refusal).message);
                ErrorResponse::new(StatusCode::OK, INTERNAL_ERROR, message)
            }
            other => return Err(other),
        },
    })
}

/// Returns the parameters of `WWW-Authenticate`, a header that API Gateway renames.
fn sign_in_data(refusal: &Refusal) -> JsonObject {
    let parameters = sign_in::parameters(refusal).into_iter();
    parameters
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}

/// Returns the unmet requirements, and who can meet them. Calls cannot bring anything besides the
/// input.
fn missing_text(missing: &UnmetRequirements, is_bare: bool) -> String {
    let requirements = &missing.requirements;
    let mut lines = Vec::new();
    for needed in &requirements.authorization {
        let challenge = missing
            .challenges
            .iter()
            .find(|it| it.provider == needed.id);
        lines.push(match challenge {
            Some(challenge) => format!(
                "The user has to authorize '{}' once: ask them to open {} and, once they have \
                 done so, call the tool again.",
                needed.id, challenge.url
            ),
            None => format!(
                "It needs the user's token for '{}', which this server cannot obtain.",
                needed.id
            ),
        });
    }
    if requirements.user_id {
        let who = if is_bare {
            "the gateway has to pass the user on"
        } else {
            "the client must authenticate with that user's token"
        };
        lines.push(format!("It has to know which user it acts for: {who}."));
    }
    for (secret, place) in requirements.secrets.iter().zip(&missing.places) {
        let id = &secret.id;
        lines.push(match place {
            SecretPlace::Header(name) => {
                format!("The client has to send the secret '{id}' in the header {name}.")
            }
            SecretPlace::Store(location) => {
                let location = location.as_deref().unwrap_or("the server's secret store");
                format!("The operator of the server has to store the secret '{id}' in {location}.")
            }
        });
    }
    for (id, _) in &missing.unreadable {
        lines.push(format!("The server cannot read the secret '{id}'."));
    }
    format!("{} cannot be called yet. {}", missing.tool, lines.join(" "))
}
