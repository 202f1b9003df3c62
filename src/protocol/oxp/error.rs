//! Encoding of refusals.
//!
//! The status is 401 for invalid credentials, 403 for other web pages, 415 for compressed bodies,
//! 422 for invalid input and 400 otherwise. The texts are the specification's, where it has any.

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::{dialect::Dialect, format::OxpFormat};
use crate::{
    call::rejection::{Rejection, UnmetRequirements},
    json::JsonObject,
    protocol::{refusal::Refusal, wording::Wording},
    tool::schema::ParameterErrors,
};

/// Returns the status of a refusal.
pub(super) fn status_of(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Unauthenticated(..) => StatusCode::UNAUTHORIZED,
        Refusal::ForbiddenOrigin => StatusCode::FORBIDDEN,
        Refusal::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Refusal::Rejected(Rejection::InvalidInput(_), _) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// OXP 1.0, Server Error Response and Validation Error Response.
#[derive(Serialize)]
pub(super) struct ErrorBody<'a> {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<&'static str>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    developer_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter_errors: Option<&'a ParameterErrors>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_requirements: Option<Value>,
}

impl<'a> ErrorBody<'a> {
    pub(super) fn of(refusal: &'a Refusal, format: &OxpFormat) -> Self {
        let mut body = Self::worded(Wording::of(refusal), format);
        let Refusal::Rejected(rejection, _) = refusal else {
            return body;
        };
        let detail = body.developer_message.take();
        body.developer_message = detail
            .map(|detail| for_path(rejection, format, detail))
            .or_else(|| format.misplaced_input.clone());
        match rejection {
            Rejection::InvalidInput(errors) => body.parameter_errors = Some(errors),
            Rejection::Missing(missing) if !missing.requirements.is_empty() => {
                body.missing_requirements = Some(requirements_of(missing));
            }
            _ => {}
        }
        body
    }

    pub(super) fn worded(Wording { message, detail }: Wording, format: &OxpFormat) -> Self {
        Self {
            schema: format.dialect.schema(),
            message,
            developer_message: detail,
            parameter_errors: None,
            missing_requirements: None,
        }
    }
}

/// Adds where a context can be sent: the path of a single tool has no place for one.
fn for_path(rejection: &Rejection, format: &OxpFormat, detail: String) -> String {
    if format.dialect == Dialect::Path && matches!(rejection, Rejection::Missing(_)) {
        return format!("{detail} Only the body of POST /tools/call has a context.");
    }
    detail
}

/// Returns the `missing_requirements` (OXP 1.0, Server Error Response).
fn requirements_of(missing: &UnmetRequirements) -> Value {
    let requirements = &missing.requirements;
    let mut body = JsonObject::new();
    if !requirements.authorization.is_empty() {
        // The challenges that would provide a token. The list is present but empty if this server
        // cannot offer any: the specification's challenges need a URL.
        body.insert("authorization".into(), json!(missing.challenges));
    }
    if requirements.user_id {
        body.insert("user_id".into(), true.into());
    }
    if !requirements.secrets.is_empty() {
        body.insert("secrets".into(), json!(requirements.secrets));
    }
    body.into()
}
