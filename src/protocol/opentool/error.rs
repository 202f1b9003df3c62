//! Rejections as JSON-RPC errors: a code and one text, which is all that the protocol has.
//!
//! The text is for the model and the user at once, so it names what is wrong and what would be
//! right. Reference: OpenTool, Client and Server, part 2; JSON-RPC 2.0, section 5.1.

use http::StatusCode;

use serde::Serialize;

use crate::{
    call::rejection::{Rejection, UnmetRequirements},
    protocol::wording::{self, CANNOT_ASK, INVALID_INPUT, MISDEFINED, Wording, shown},
    tool::schema::ParameterErrors,
};

/// JSON-RPC 2.0: the body is not JSON.
pub(super) const PARSE_ERROR: i32 = -32700;
/// JSON-RPC 2.0: the body is JSON, but not a request.
pub(super) const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
pub(super) const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;
/// The server cannot take the call at the moment. JSON-RPC 2.0 leaves -32000 to -32099 to servers.
const UNAVAILABLE: i32 = -32000;
/// The tool needs what neither the call nor the server has.
const MISSING_REQUIREMENTS: i32 = -32001;
/// The id belongs to a call that asks for something else.
const ID_REUSED: i32 = -32002;
/// OpenTool: the tool failed.
pub(super) const FAILED: i32 = 500;

/// JSON-RPC 2.0, section 5.1.
#[derive(Serialize)]
pub(super) struct RpcError {
    pub(super) code: i32,
    pub(super) message: String,
}

impl RpcError {
    /// An answer that cannot be sent.
    pub(super) fn internal(detail: &str) -> Self {
        Self {
            code: INTERNAL_ERROR,
            message: detail.to_owned(),
        }
    }
}

/// What became of a call that was understood: an error in a 200, but for credentials.
pub(super) fn status_of(rejection: &Rejection) -> (StatusCode, i32) {
    match rejection {
        Rejection::Unauthenticated(_) => (StatusCode::UNAUTHORIZED, 401),
        // Whatever is wrong with the call's form was said before; this is a body that did not
        // arrive.
        Rejection::Malformed { .. }
        | Rejection::UnsupportedVersion
        | Rejection::InvalidToolId(_) => (StatusCode::BAD_REQUEST, INVALID_REQUEST),
        Rejection::UnknownTool { .. } | Rejection::UnknownVersion { .. } => {
            (StatusCode::OK, METHOD_NOT_FOUND)
        }
        Rejection::InvalidInput(_) | Rejection::CheckTimedOut { .. } => {
            (StatusCode::OK, INVALID_PARAMS)
        }
        Rejection::Missing(_) if !rejection.is_temporary() => {
            (StatusCode::OK, MISSING_REQUIREMENTS)
        }
        Rejection::Misdefined { .. } => (StatusCode::OK, INTERNAL_ERROR),
        Rejection::CallIdReused => (StatusCode::OK, ID_REUSED),
        // Of any of the three requests, also of those that are not JSON-RPC.
        Rejection::Undecided => (StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE),
        Rejection::Unauthorizable(_) if !rejection.is_temporary() => {
            (StatusCode::OK, INTERNAL_ERROR)
        }
        Rejection::Missing(_)
        | Rejection::Unauthorizable(_)
        | Rejection::Unprotected(_)
        | Rejection::Busy
        | Rejection::Unavailable => (StatusCode::OK, UNAVAILABLE),
    }
}

pub(super) fn message_of(rejection: &Rejection) -> String {
    match rejection {
        // The text that the specification gives to its clients.
        Rejection::Unauthenticated(_) => "Please check API Key is VALID or NOT".to_owned(),
        Rejection::Malformed { detail, .. } => detail.clone(),
        Rejection::UnknownTool { qualified, closest } => unknown(qualified, closest.as_deref()),
        Rejection::InvalidInput(errors) => invalid_params(errors),
        Rejection::Missing(_) if rejection.is_temporary() => wording::UNAVAILABLE.to_owned(),
        Rejection::Missing(missing) => missing_requirements(missing),
        Rejection::Misdefined { .. } => MISDEFINED.to_owned(),
        Rejection::CallIdReused => "This id belongs to another call: one with the same id \
                asked for other arguments. Nothing was run; a new call needs a new id."
            .to_owned(),
        Rejection::Unauthorizable(error) if !error.is_temporary() => CANNOT_ASK.to_owned(),
        Rejection::Unauthorizable(_)
        | Rejection::Undecided
        | Rejection::Busy
        | Rejection::Unprotected(_)
        | Rejection::Unavailable => wording::UNAVAILABLE.to_owned(),
        // In the same words, or what only OXP's calls can name.
        other @ (Rejection::CheckTimedOut { .. }
        | Rejection::UnsupportedVersion
        | Rejection::InvalidToolId(_)
        | Rejection::UnknownVersion { .. }) => Wording::of(other).into_detail(),
    }
}

fn unknown(name: &str, closest: Option<&str>) -> String {
    let name = shown(name);
    let found = format!("Tool '{name}' was not found");
    match closest {
        Some(closest) => format!("{found}; did you mean '{closest}'?"),
        None => found,
    }
}

/// Every bad parameter, not only the first.
fn invalid_params(errors: &ParameterErrors) -> String {
    /// As many as a model should read; names are as long as the caller likes.
    const LONGEST: usize = 8000;
    let errors: Vec<_> = errors
        .iter()
        .map(|(path, error)| format!("{path}: {error}"))
        .collect();
    let mut text = format!("{INVALID_INPUT}: {}", errors.join("; "));
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}

/// The calls of this protocol cannot bring what is missing; the server's owner has to.
fn missing_requirements(missing: &UnmetRequirements) -> String {
    let mut which = Vec::new();
    let providers = missing.requirements.authorization.iter();
    which.extend(providers.map(|it| format!("a token of '{}' for the user", it.id)));
    if missing.requirements.user_id {
        which.push("a user id".to_owned());
    }
    // Where it should be, and why it cannot be read, is for the log: this text is for the model.
    let secrets = missing.requirements.secrets.iter();
    which.extend(secrets.map(|it| format!("the secret '{}'", it.id)));
    let unreadable = missing.unreadable.iter();
    which.extend(unreadable.map(|(id, _)| format!("the secret '{id}', which cannot be read")));
    let mut text = format!("{} needs {}.", missing.tool, which.join(" and "));
    if !missing.challenges.is_empty() {
        let urls: Vec<_> = missing
            .challenges
            .iter()
            .map(|it| it.url.as_str())
            .collect();
        let urls = urls.join(" and ");
        text = format!("{text} Ask the user to allow it at {urls} and call again.");
    } else if missing.requirements.user_id || !missing.requirements.authorization.is_empty() {
        text.push_str(" OpenTool's calls cannot bring a user id or tokens.");
    }
    text
}
