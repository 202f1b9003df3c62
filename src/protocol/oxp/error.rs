//! Encoding of rejections.
//!
//! The status is 401 for invalid credentials, 403 for other web pages, 422 for invalid input and 400
//! otherwise. The texts are the specification's, where it has any.

use http::StatusCode;
use serde_json::{Value, json};

use super::{dialect::Dialect, form::OxpForm};
use crate::{
    call::rejection::{Rejection, UnmetRequirements},
    payload::JsonObject,
    protocol::wording::Wording,
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
pub(super) fn body_of(rejection: &Rejection, form: &OxpForm) -> Value {
    let Wording { message, detail } = Wording::of(rejection);
    let detail = detail.map(|detail| for_path(rejection, form, detail));
    let mut body = JsonObject::new();
    if let Some(schema) = form.dialect.schema() {
        body.insert("$schema".into(), schema.into());
    }
    body.insert("message".into(), message.into());
    if let Some(detail) = detail.or_else(|| form.misplaced_input.clone()) {
        body.insert("developer_message".into(), detail.into());
    }
    match rejection {
        Rejection::InvalidInput(errors) => {
            body.insert("parameter_errors".into(), json!(errors));
        }
        Rejection::Missing(missing) if !missing.requirements.is_empty() => {
            body.insert("missing_requirements".into(), requirements_of(missing));
        }
        _ => {}
    }
    body.into()
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
