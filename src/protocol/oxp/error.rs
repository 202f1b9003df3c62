//! Encoding of rejections.
//!
//! The status is 401 for invalid credentials, 403 for other web pages, 422 for invalid input and 400
//! otherwise. The texts are the specification's, where it has any.

use http::StatusCode;
use serde::Serialize;

use super::{dialect::Dialect, form::OxpForm};
use crate::{
    call::rejection::{Rejection, UnmetRequirements},
    protocol::wording::Wording,
    tool::{
        requirement::{Challenge, SecretRequirement},
        schema::ParameterErrors,
    },
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
    schema: Option<&'a str>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    developer_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter_errors: Option<&'a ParameterErrors>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_requirements: Option<MissingRequirementsBody<'a>>,
}

/// OXP 1.0, Server Error Response, `missing_requirements`.
#[derive(Serialize)]
struct MissingRequirementsBody<'a> {
    /// The challenges that would provide a token. The list is present but empty if this server
    /// cannot offer any: the specification's challenges need a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    authorization: Option<&'a [Challenge]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    user_id: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    secrets: &'a [SecretRequirement],
}

impl<'a> ErrorBody<'a> {
    pub(super) fn of(rejection: &'a Rejection, form: &'a OxpForm) -> Self {
        let Wording { message, detail } = Wording::of(rejection);
        let (parameter_errors, missing_requirements) = match rejection {
            Rejection::InvalidInput(errors) => (Some(errors), None),
            Rejection::Missing(missing) => (None, MissingRequirementsBody::of(missing)),
            _ => (None, None),
        };
        Self {
            schema: form.dialect.schema(),
            message,
            developer_message: detail
                .map(|detail| for_path(rejection, form, detail))
                .or_else(|| form.misplaced_input.clone()),
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

impl<'a> MissingRequirementsBody<'a> {
    fn of(missing: &'a UnmetRequirements) -> Option<Self> {
        let requirements = &missing.requirements;
        let needs_tokens = !requirements.authorization.is_empty();
        (!requirements.is_empty()).then(|| Self {
            authorization: needs_tokens.then_some(&*missing.challenges),
            user_id: requirements.user_id,
            secrets: &requirements.secrets,
        })
    }
}
