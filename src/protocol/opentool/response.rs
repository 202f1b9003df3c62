//! Encoding of JSON-RPC responses: outcomes and refusals.
//!
//! `result` is an object in every response; `error` is `null` on success. Both the model and the user
//! read the single text of an error, so it names the error and the fix. Reference: OpenTool, Client
//! and Server, part 2; JSON-RPC 2.0, section 5.1.

use std::collections::BTreeMap;

use http::StatusCode;
use serde::Serialize;

use crate::{
    Failure,
    call::{
        Outcome,
        rejection::{Rejection, SecretPlace, UnmetRequirements},
    },
    protocol::{
        json_response::to_json,
        jsonrpc::{
            INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR,
            RpcError, RpcId,
        },
        refusal::Refusal,
        wording::{Wording, clipped_name},
    },
    text::clipped,
    tool::{output::Output, schema::ParameterErrors},
    wire::jsonrpc,
};

/// The server cannot take the call at the moment. JSON-RPC 2.0 leaves -32000 to -32099 to servers.
const UNAVAILABLE: i32 = -32000;
/// The tool has requirements that neither the call nor the server meets.
const MISSING_REQUIREMENTS: i32 = -32001;
/// The id belongs to a different call.
const ID_REUSED: i32 = -32002;
/// OpenTool: the tool failed.
const FAILED: i32 = 500;

/// An empty object.
const NOTHING: BTreeMap<&str, &Output> = BTreeMap::new();

#[derive(Serialize)]
struct RpcResponse<'a, T> {
    jsonrpc: &'static str,
    result: T,
    error: Option<RpcError>,
    id: &'a RpcId,
}

pub(super) fn encode_outcome(outcome: &Outcome, id: Option<&RpcId>) -> Vec<u8> {
    match &outcome.result {
        Ok(output) if output.is_null() => encode(NOTHING, None, id),
        // An object is the result itself; any other value is wrapped.
        Ok(output) if output.is_object() => encode(output, None, id),
        Ok(output) => encode(BTreeMap::from([("value", output)]), None, id),
        Err(failure) => encode_error(RpcError::new(FAILED, message_of(failure)), id),
    }
}

pub(super) fn encode_error(error: RpcError, id: Option<&RpcId>) -> Vec<u8> {
    encode(NOTHING, Some(error), id)
}

pub(super) fn encode_refusal(refusal: &Refusal, id: Option<&RpcId>) -> (StatusCode, Vec<u8>) {
    let (status, code) = status_of(refusal);
    let error = RpcError::new(code, message_of_refusal(refusal));
    (status, encode_error(error, id))
}

/// Returns the message of a failure with its hint for the next attempt, because the protocol has
/// only one text for an error.
fn message_of(failure: &Failure) -> String {
    let message = failure.message();
    match &failure.parts().additional_prompt_content {
        Some(prompt) => format!("{message} ({prompt})"),
        None => message.to_owned(),
    }
}

fn encode(result: impl Serialize, error: Option<RpcError>, id: Option<&RpcId>) -> Vec<u8> {
    let unknown = serde_json::from_str(r#""""#).expect("this is JSON");
    to_json(&RpcResponse {
        jsonrpc: jsonrpc::VERSION,
        result,
        error,
        id: id.unwrap_or(unknown),
    })
}

/// Returns the status and code for a refusal. A well-formed call gets a 200, unless its credentials
/// are invalid, could not be checked, or do not allow calls for the user.
fn status_of(refusal: &Refusal) -> (StatusCode, i32) {
    match refusal {
        Refusal::Unauthenticated(..) => (StatusCode::UNAUTHORIZED, 401),
        Refusal::ForbiddenOrigin => (StatusCode::FORBIDDEN, INVALID_REQUEST),
        Refusal::Encoded => (StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_REQUEST),
        // The body could not be read.
        Refusal::Invalid { .. } => (StatusCode::BAD_REQUEST, PARSE_ERROR),
        Refusal::TooLarge { .. } | Refusal::Rejected(Rejection::WrongUser(_), _) => {
            (StatusCode::BAD_REQUEST, INVALID_REQUEST)
        }
        // Can occur on all three routes; two of them are not JSON-RPC.
        Refusal::Undecided(_) => (StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE),
        Refusal::UnknownKey(_) => (StatusCode::TOO_MANY_REQUESTS, UNAVAILABLE),
        Refusal::Rejected(rejection, _) => (StatusCode::OK, code_of(rejection)),
    }
}

/// Returns the code for a rejection of a well-formed call.
fn code_of(rejection: &Rejection) -> i32 {
    match rejection {
        _ if rejection.is_temporary() => UNAVAILABLE,
        Rejection::UnknownTool { .. } | Rejection::UnknownVersion { .. } => METHOD_NOT_FOUND,
        Rejection::InvalidInput(_) => INVALID_PARAMS,
        Rejection::InsufficientScope { .. }
        | Rejection::NotAllowed { .. }
        | Rejection::Missing(_) => MISSING_REQUIREMENTS,
        Rejection::CallIdReused => ID_REUSED,
        Rejection::Unprotected(_) | Rejection::Uncounted(_) | Rejection::QuotaExceeded(_) => {
            UNAVAILABLE
        }
        _ => INTERNAL_ERROR,
    }
}

fn message_of_refusal(refusal: &Refusal) -> String {
    let Wording { message, detail } = Wording::of(refusal);
    let rejection = match refusal {
        // The specification's text.
        Refusal::Unauthenticated(_, None) => {
            return "Please check API Key is VALID or NOT".to_owned();
        }
        Refusal::Unauthenticated(_, Some(_)) => {
            return format!("{message}. {}", detail.unwrap_or_default());
        }
        Refusal::Undecided(_) => return message,
        Refusal::Rejected(rejection, _) => rejection,
        _ => return detail.unwrap_or(message),
    };
    match rejection {
        Rejection::UnknownTool { qualified, closest } => unknown(qualified, closest.as_deref()),
        Rejection::InvalidInput(errors) => invalid_params(&message, errors),
        Rejection::Unprotected(_)
        | Rejection::Uncounted(_)
        | Rejection::Unauthorizable(_)
        | Rejection::Misdefined { .. } => message,
        _ if rejection.is_temporary() => message,
        Rejection::Missing(missing) => missing_requirements(missing),
        Rejection::CallIdReused => {
            "This id belongs to another call: an earlier call with the same id had different \
             arguments. Nothing was run; a new call needs a new id."
                .to_owned()
        }
        _ => detail.unwrap_or(message),
    }
}

fn unknown(name: &str, closest: Option<&str>) -> String {
    let name = clipped_name(name);
    let message = format!("Tool '{name}' was not found");
    match closest {
        Some(closest) => format!("{message}; did you mean '{closest}'?"),
        None => message,
    }
}

/// Lists every invalid parameter, not only the first.
fn invalid_params(message: &str, errors: &ParameterErrors) -> String {
    /// The maximum length of the text, in bytes: parameter names are unbounded.
    const LONGEST: usize = 8000;
    let errors: Vec<_> = errors
        .iter()
        .map(|(path, error)| format!("{path}: {error}"))
        .collect();
    let text = format!("{message}: {}", errors.join("; "));
    clipped(&text, LONGEST).into_owned()
}

/// Names what is missing: calls in this protocol cannot supply it, so the server's owner has to.
fn missing_requirements(missing: &UnmetRequirements) -> String {
    let mut items = Vec::new();
    let providers = missing.requirements.authorization.iter();
    items.extend(providers.map(|it| format!("a token for '{}' for the user", it.id)));
    if missing.requirements.user_id {
        items.push("a user id".to_owned());
    }
    // The secret's location in the store and the read error are for the log: this text is for the
    // model.
    let secrets = missing.requirements.secrets.iter().zip(&missing.places);
    items.extend(secrets.map(|(it, place)| match place {
        SecretPlace::Header(name) => format!("the secret '{}' in the header {name}", it.id),
        SecretPlace::Store(_) => format!("the secret '{}'", it.id),
    }));
    let unreadable = missing.unreadable.iter();
    items.extend(unreadable.map(|(id, _)| format!("the secret '{id}', which cannot be read")));
    let mut text = format!("{} needs {}.", missing.tool, items.join(" and "));
    if !missing.challenges.is_empty() {
        let urls: Vec<_> = missing
            .challenges
            .iter()
            .map(|it| it.url.as_str())
            .collect();
        let urls = urls.join(" and ");
        text = format!("{text} Ask the user to allow it at {urls} and call again.");
    } else if missing.requirements.user_id || !missing.requirements.authorization.is_empty() {
        text.push_str(" OpenTool's calls cannot carry a user id or tokens.");
    }
    text
}
