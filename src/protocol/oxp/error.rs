//! Encoding of rejections.
//!
//! A 422 for the input, else a 400; the specification's texts where it gives any.

use http::StatusCode;
use semver::Version;
use serde::Serialize;

use super::dialect::Dialect;
use crate::{
    call::rejection::{Missing, Rejection},
    text::clipped,
    tool::{
        requirement::{Challenge, SecretRequirement},
        schema::ParameterErrors,
    },
};

pub(crate) const UNAVAILABLE: &str = "The tool server is temporarily unavailable";

/// Neither ids nor names of functions have a length that would end.
pub(crate) const LONGEST_NAME: usize = 128;

/// The status of a rejection.
pub(super) fn status_of(rejection: &Rejection) -> StatusCode {
    match rejection {
        Rejection::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
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
    missing_requirements: Option<MissingRequirements<'a>>,
}

/// OXP 1.0, Server Error Response, `missing_requirements`.
#[derive(Serialize)]
struct MissingRequirements<'a> {
    /// The challenges that would provide a token. The list is empty, and still there, where this
    /// server can offer none: the specification's challenges need a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    authorization: Option<&'a [Challenge]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    user_id: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    secrets: &'a [SecretRequirement],
}

impl<'a> ErrorBody<'a> {
    pub(super) fn plain(message: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            schema: None,
            message: message.into(),
            developer_message: Some(detail.into()),
            parameter_errors: None,
            missing_requirements: None,
        }
    }

    pub(super) fn of(rejection: &'a Rejection) -> Self {
        match rejection {
            Rejection::Unauthenticated(_) => Self::plain(
                "The credentials are missing or not valid",
                "Send an API key as OXP-API-Key or as Authorization: Bearer, or a JWT as the \
                 latter, whichever this server takes.",
            ),
            Rejection::Undecided => Self::plain(
                UNAVAILABLE,
                "The server cannot tell at the moment whether the credentials are valid.",
            ),
            Rejection::Malformed { message, detail } => Self::plain(message, detail),
            Rejection::UnsupportedVersion => Self::plain(
                "This version of the protocol is not supported",
                "Supported are OXP 1.0 (OXP-Version: 1.0 or urn:oxp:1.0) and Open Tool Calling \
                 1.0 (otc://1.0).",
            ),
            Rejection::InvalidToolId(error) => {
                Self::plain("The tool ID is not valid", format!("'tool_id': {error}."))
            }
            Rejection::UnknownTool { qualified, closest } => {
                unknown_tool(qualified, closest.as_deref())
            }
            Rejection::UnknownVersion {
                qualified,
                version,
                available,
            } => unknown_version(qualified, version, available),
            Rejection::InvalidInput(errors) => Self {
                developer_message: None,
                parameter_errors: Some(errors),
                ..Self::plain("Some input parameters are invalid", "")
            },
            Rejection::CheckTimedOut { limit } => {
                let ms = limit.as_millis();
                Self::plain(
                    "The input could not be checked in time",
                    format!(
                        "Checking it took more than the {ms} ms of this call. Nothing was run."
                    ),
                )
            }
            Rejection::Busy => Self::plain(
                UNAVAILABLE,
                "Other large requests are being worked on. Nothing was run.",
            ),
            Rejection::Missing(missing) => missing_requirements(missing),
            Rejection::Misdefined { tool, detail } => Self::plain(
                "This tool cannot be called because of a mistake in its definition",
                format!("{tool}: {detail}"),
            ),
            Rejection::CallIdReused => Self::plain(
                "This call_id belongs to another call",
                "A call with this call_id asked for another version, input or user, or brought \
                 other credentials. Nothing was run; a new call needs a new call_id.",
            ),
            Rejection::Unprotected(error) => Self::plain(
                UNAVAILABLE,
                format!(
                    "Nothing was run: it cannot be told whether this call has run before ({error})."
                ),
            ),
            Rejection::Unauthorizable(error) if error.is_temporary() => {
                Self::plain(UNAVAILABLE, error.to_string())
            }
            Rejection::Unauthorizable(error) => Self::plain(
                "The tool server cannot ask the user for authorization",
                error.to_string(),
            ),
            Rejection::Unavailable => Self::plain(
                UNAVAILABLE,
                "The server says that it is not ready to take calls.",
            ),
        }
    }

    pub(super) fn in_dialect(self, dialect: Dialect) -> Self {
        Self {
            schema: dialect.schema(),
            ..self
        }
    }
}

/// What a log should say of a rejection. Parameters are the caller's own affair.
pub(crate) fn detail_of(rejection: &Rejection) -> String {
    let ErrorBody {
        message,
        developer_message,
        ..
    } = ErrorBody::of(rejection);
    developer_message.unwrap_or(message)
}

fn unknown_tool(qualified: &str, closest: Option<&str>) -> ErrorBody<'static> {
    let detail = match closest {
        Some(closest) => format!(
            "{} is not a tool of this server; did you mean {closest}?",
            clipped(qualified, LONGEST_NAME)
        ),
        None => format!(
            "{} is not a tool of this server.",
            clipped(qualified, LONGEST_NAME)
        ),
    };
    ErrorBody::plain(not_found(qualified), detail)
}

fn unknown_version(
    qualified: &str,
    version: &Version,
    available: &[Version],
) -> ErrorBody<'static> {
    let available: Vec<_> = available.iter().map(Version::to_string).collect();
    let available = available.join(", ");
    ErrorBody::plain(
        not_found(qualified),
        format!("{qualified} version {version} is not available; available: {available}"),
    )
}

/// The specification's text, with the tool's name as models know it.
fn not_found(qualified: &str) -> String {
    let name = clipped(qualified, LONGEST_NAME).replace('.', "_");
    format!("Tool '{name}' was not found")
}

fn missing_requirements(missing: &Missing) -> ErrorBody<'_> {
    let Missing {
        tool, requirements, ..
    } = missing;
    let (mut what, mut which) = (Vec::new(), Vec::new());
    if !requirements.authorization.is_empty() {
        what.push("Authorization");
        let providers = requirements.authorization.iter();
        which
            .extend(providers.map(|it| format!("a token of '{}' in context.authorization", it.id)));
    }
    if requirements.user_id {
        what.push("User ID");
        which.push("context.user_id".to_owned());
    }
    if !requirements.secrets.is_empty() {
        what.push("Secrets");
        let secrets = requirements.secrets.iter().zip(&missing.places);
        which.extend(secrets.map(|(it, place)| {
            let from_calls = missing.from_calls.then_some("context.secrets");
            let places: Vec<_> = from_calls.into_iter().chain(place.as_deref()).collect();
            format!("the secret '{}' in {}", it.id, places.join(" or in "))
        }));
    }
    let is_temporary = missing
        .unreadable
        .iter()
        .all(|(_, error)| error.is_temporary());
    let message = if missing.unreadable.is_empty() {
        let what = what.join(", ");
        format!("{what} required before this tool can be called")
    } else if is_temporary {
        UNAVAILABLE.to_owned()
    } else {
        "The tool server cannot read a secret that this tool needs".to_owned()
    };
    let unreadable = missing.unreadable.iter();
    which.extend(unreadable.map(|(id, error)| format!("the secret '{id}' ({error})")));
    let detail = format!("{tool} needs {}.", which.join(" and "));
    ErrorBody {
        missing_requirements: (!requirements.is_empty()).then(|| MissingRequirements {
            authorization: (!requirements.authorization.is_empty()).then_some(&missing.challenges),
            user_id: requirements.user_id,
            secrets: &requirements.secrets,
        }),
        ..ErrorBody::plain(message, detail)
    }
}
