//! What is said of a rejection, in whichever protocol.
//!
//! A message for the model and its user, and a detail for the developer, as OXP has them. Protocols
//! that have one text take the detail.

use semver::Version;

use crate::{
    call::rejection::{Rejection, UnmetRequirements},
    text::clipped,
};

pub(super) const UNAVAILABLE: &str = "The tool server is temporarily unavailable";
pub(super) const MISDEFINED: &str =
    "This tool cannot be called because of a mistake in its definition";
pub(super) const CANNOT_ASK: &str = "The tool server cannot ask the user for authorization";
pub(super) const INVALID_INPUT: &str = "Some input parameters are invalid";

/// Neither ids nor names of functions have a length that would end.
const LONGEST_NAME: usize = 128;

/// A rejection in words.
pub(super) struct Wording {
    pub(super) message: String,
    /// None where the parameters' own errors say it.
    pub(super) detail: Option<String>,
}

impl Wording {
    pub(super) fn new(message: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            detail: Some(detail.into()),
        }
    }

    pub(super) fn of(rejection: &Rejection) -> Self {
        match rejection {
            Rejection::Unauthenticated(_) => Self::new(
                "The credentials are missing or not valid",
                "Send an API key as OXP-API-Key or as Authorization: Bearer, or a JWT as the \
                 latter, whichever this server takes.",
            ),
            Rejection::Undecided => Self::new(
                UNAVAILABLE,
                "The server cannot tell at the moment whether the credentials are valid.",
            ),
            Rejection::Malformed { message, detail } => Self::new(message, detail),
            Rejection::UnsupportedVersion => Self::new(
                "This version of the protocol is not supported",
                "Supported are OXP 1.0 (OXP-Version: 1.0 or urn:oxp:1.0) and Open Tool Calling \
                 1.0 (otc://1.0).",
            ),
            Rejection::InvalidToolId(error) => {
                Self::new("The tool ID is not valid", format!("'tool_id': {error}."))
            }
            Rejection::UnknownTool { qualified, closest } => {
                unknown_tool(qualified, closest.as_deref())
            }
            Rejection::UnknownVersion {
                qualified,
                version,
                available,
            } => unknown_version(qualified, version, available),
            Rejection::InvalidInput(_) => Self {
                message: INVALID_INPUT.to_owned(),
                detail: None,
            },
            Rejection::CheckTimedOut { limit } => {
                let ms = limit.as_millis();
                Self::new(
                    "The input could not be checked in time",
                    format!(
                        "Checking it took more than the {ms} ms of this call. Nothing was run."
                    ),
                )
            }
            Rejection::Busy => Self::new(
                UNAVAILABLE,
                "Other large requests are being worked on. Nothing was run.",
            ),
            Rejection::Missing(missing) => missing_requirements(missing),
            Rejection::Misdefined { tool, detail } => {
                Self::new(MISDEFINED, format!("{tool}: {detail}"))
            }
            Rejection::CallIdReused => Self::new(
                "This call_id belongs to another call",
                "A call with this call_id asked for another version, input or user, or brought \
                 other credentials. Nothing was run; a new call needs a new call_id.",
            ),
            Rejection::Unprotected(error) => Self::new(
                UNAVAILABLE,
                format!(
                    "Nothing was run: it cannot be told whether this call has run before ({error})."
                ),
            ),
            Rejection::Unauthorizable(error) if error.is_temporary() => {
                Self::new(UNAVAILABLE, error.to_string())
            }
            Rejection::Unauthorizable(error) => Self::new(CANNOT_ASK, error.to_string()),
            Rejection::Unavailable => Self::new(
                UNAVAILABLE,
                "The server says that it is not ready to take calls.",
            ),
        }
    }

    /// What a log should say of a rejection, and a protocol that has one text. Parameters are the
    /// caller's own affair.
    pub(super) fn into_detail(self) -> String {
        self.detail.unwrap_or(self.message)
    }
}

/// The name of a tool as it was asked for.
pub(super) fn shown(name: &str) -> std::borrow::Cow<'_, str> {
    clipped(name, LONGEST_NAME)
}

fn unknown_tool(qualified: &str, closest: Option<&str>) -> Wording {
    let detail = match closest {
        Some(closest) => format!(
            "{} is not a tool of this server; did you mean {closest}?",
            shown(qualified)
        ),
        None => format!("{} is not a tool of this server.", shown(qualified)),
    };
    Wording::new(not_found(qualified), detail)
}

fn unknown_version(qualified: &str, version: &Version, available: &[Version]) -> Wording {
    let available: Vec<_> = available.iter().map(Version::to_string).collect();
    let available = available.join(", ");
    Wording::new(
        not_found(qualified),
        format!("{qualified} version {version} is not available; available: {available}"),
    )
}

/// The specification's text, with the tool's name as models know it.
fn not_found(qualified: &str) -> String {
    let name = shown(qualified).replace('.', "_");
    format!("Tool '{name}' was not found")
}

fn missing_requirements(missing: &UnmetRequirements) -> Wording {
    let UnmetRequirements {
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
        let secrets = requirements.secrets.iter().zip(&missing.locations);
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
    Wording::new(message, detail)
}
