//! Encoding of rejections.
//!
//! The status is 401 for invalid credentials, 403 for other web pages, 422 for invalid input and 400
//! otherwise. The texts are the specification's, where it has any.

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::{dialect::Dialect, form::OxpForm};
use crate::{
    call::rejection::{Rejection, UnmetRequirements},
    payload::JsonObject,
    protocol::wording::Wording,
    tool::schema::ParameterErrors,
};

/// The status of a rejection.
pub(super) fn status_of(rejection: &Rejection) -> StatusCode {
    match rejection {
        Rejection::Unauthenticated(..) => StatusCode::UNAUTHORIZED,
        Rejection::ForbiddenOrigin => StatusCode::FORBIDDEN,
        Rejection::InvalidInput(_) => StatusCode::UNPROCESSABLE_ENTITY,
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
    pub(super) fn of(rejection: &'a Rejection, form: &OxpForm) -> Self {
        let Wording { message, detail } = Wording::of(rejection);
        let detail = detail.map(|detail| for_path(rejection, form, detail));
        let (parameter_errors, missing_requirements) = match rejection {
            Rejection::InvalidInput(errors) => (Some(errors), None),
            Rejection::Missing(missing) if !missing.requirements.is_empty() => {
                (None, Some(requirements_of(missing)))
            }
            _ => (None, None),
        };
        Self {
            schema: form.dialect.schema(),
            message,
            developer_message: detail.or_else(|| form.misplaced_input.clone()),
            parameter_errors,
            missing_requirements,
        }
    }
}

/// The path of a single tool has no place for a context.
fn for_path(rejection: &Rejection, form: &OxpForm, detail: String) -> String {
    if form.dialect == Dialect::Path && matches!(rejection, Rejection::Missing(_)) {
        return format!("{detail} Only the body of POST /tools/call has a context.");
    }
    detail
}

/// OXP 1.0, Server Error Response, `missing_requirements`.
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
