//! The texts of refusals, for every protocol.
//!
//! As in OXP, there is a message for the model and its user, and a detail for the developer.
//! Protocols with a single text use the detail.

use std::time::Duration;

use semver::Version;

use super::{
    refusal::{Refusal, SignInHint},
    sign_in::sentence,
};
use crate::{
    Failure, IdError,
    call::rejection::{Rejection, SecretPlace, UnmetRequirements},
    text::{clipped, counted},
};

const UNAVAILABLE: &str = "The tool server is temporarily unavailable";

/// The maximum length, in bytes, of an id or a function name in a text: on the wire, both are
/// unbounded.
const LONGEST_NAME: usize = 128;

/// A refusal in words.
pub(crate) struct Wording {
    pub(crate) message: String,
    /// `None` if the parameters' own errors are the detail.
    pub(crate) detail: Option<String>,
}

impl Wording {
    pub(super) fn new(message: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            detail: Some(detail.into()),
        }
    }

    pub(super) fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Unauthenticated(_, sign_in) => unauthenticated(sign_in.as_deref()),
            Refusal::Undecided(_) => Self::new(
                UNAVAILABLE,
                "The server cannot check the credentials at the moment.",
            ),
            Refusal::UnknownKey(_) => Self::new(
                "The credentials cannot be checked yet",
                "The access token is signed with a key that its issuer is not known to have.",
            ),
            Refusal::ForbiddenOrigin => Self::new(
                "This request is not allowed here",
                "The request comes from a web page whose origin is not allowed.",
            ),
            Refusal::TooLarge { largest } => Self::new(
                "The request is too large",
                format!("The body has more than {largest} bytes, the limit of this server."),
            ),
            Refusal::Encoded => Self::new(
                "The request cannot be understood",
                "The server decodes no Content-Encoding: send the body without one.",
            ),
            Refusal::Invalid {
                message, detail, ..
            } => Self::new(message, detail),
            Refusal::Rejected(rejection, sign_in) => Self::rejected(rejection, sign_in.as_deref()),
        }
    }

    /// Words the rejection of an invalid id. `closest` is the id that may be meant.
    pub(crate) fn invalid_tool_id(error: &IdError, closest: Option<&str>) -> Self {
        let detail = format!("'tool_id': {error}{}", did_you_mean(closest));
        Self::new("The tool ID is not valid", detail)
    }

    pub(crate) fn rejected(rejection: &Rejection, sign_in: Option<&SignInHint>) -> Self {
        match rejection {
            Rejection::WrongUser(detail) => {
                Self::new("The credentials do not allow calls for this user", *detail)
            }
            Rejection::InsufficientScope { tool, scopes } => {
                insufficient_scope(tool, &scopes.join(" "), sign_in)
            }
            Rejection::NotAllowed { tool } => Self::new(
                "The caller may not call this tool",
                format!("The caller may not call {tool}. Nothing was run."),
            ),
            Rejection::UnknownTool { qualified, closest } => {
                unknown_tool(qualified, closest.as_deref())
            }
            Rejection::UnknownVersion {
                qualified,
                version,
                available,
            } => unknown_version(qualified, version, available),
            Rejection::InvalidInput(_) => Self {
                message: "Some input parameters are invalid".to_owned(),
                detail: None,
            },
            Rejection::Busy => Self::new(
                UNAVAILABLE,
                "Other large requests are being processed. Nothing was run.",
            ),
            Rejection::Missing(missing) => missing_requirements(missing),
            Rejection::Misdefined { tool, detail } => Self::new(
                "This tool cannot be called because of an error in its definition",
                format!("{tool}: {detail}"),
            ),
            Rejection::CallIdReused => Self::new(
                "This call_id belongs to another call",
                "A call with this call_id had another version, input or user, or other \
                 credentials. Nothing was run; a new call needs a new call_id.",
            ),
            Rejection::Unprotected(error) => Self::new(
                UNAVAILABLE,
                format!(
                    "Nothing was run: the server cannot determine whether this call has run before ({error})."
                ),
            ),
            Rejection::Unauthorizable(error) if error.is_temporary() => {
                Self::new(UNAVAILABLE, error.to_string())
            }
            Rejection::Unauthorizable(error) => Self::new(
                "The tool server cannot ask the user for authorization",
                error.to_string(),
            ),
            Rejection::QuotaExceeded(quota) => Self::new(
                "Too many calls",
                format!(
                    "The quota of {} is used up. Nothing was run; calls are accepted again in {}.",
                    quota.in_words,
                    wait_in_words(quota.wait)
                ),
            ),
            Rejection::Uncounted(error) => Self::new(
                UNAVAILABLE,
                format!(
                    "Nothing was run: the server cannot determine how many calls have run ({error})."
                ),
            ),
            Rejection::RequiresTask => Self::new(
                "This tool takes longer than a call can",
                "It can only be called by MCP clients that support tasks. Nothing was run.",
            ),
            Rejection::Unavailable => {
                Self::new(UNAVAILABLE, "The server is not ready to accept calls.")
            }
        }
    }

    /// Returns the text for the log, and for protocols with a single text. Parameter errors are
    /// left out: they concern only the caller.
    pub(super) fn into_detail(self) -> String {
        self.detail.unwrap_or(self.message)
    }
}

/// The failure that a call in the background ends with if it is refused.
impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let Wording { message, detail } = Wording::of(&refusal);
        let mut failure = Failure::new(message);
        if refusal.retry_after().is_some() {
            failure = failure.retry();
        }
        match detail {
            Some(detail) => failure.developer_message(&detail).prompt(detail),
            None => failure,
        }
    }
}

/// Returns the requested name of a tool, cut to a readable length.
pub(super) fn clipped_name(name: &str) -> std::borrow::Cow<'_, str> {
    clipped(name, LONGEST_NAME)
}

/// Returns a time in the unit that readers count in, rounded up.
fn wait_in_words(wait: Duration) -> String {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let (number, unit) = match seconds {
        ..120 => (seconds.max(1), "second"),
        120..7_200 => (seconds.div_ceil(60), "minute"),
        7_200..172_800 => (seconds.div_ceil(3_600), "hour"),
        _ => (seconds.div_ceil(86_400), "day"),
    };
    counted(number, unit, &format!("{unit}s"))
}

fn unauthenticated(sign_in: Option<&SignInHint>) -> Wording {
    let detail = match sign_in {
        None => "Send an API key as OXP-API-Key or as Authorization: Bearer, or a JWT as the \
                 latter, whichever this server accepts."
            .to_owned(),
        Some(sign_in) => {
            let scope = match &*sign_in.scope {
                "" => String::new(),
                scope => format!(" with the scope '{scope}'"),
            };
            let source = sentence(Some(sign_in));
            format!("Send an access token{scope} as Authorization: Bearer.{source}")
        }
    };
    Wording::new("The credentials are missing or not valid", detail)
}

fn insufficient_scope(tool: &str, scopes: &str, sign_in: Option<&SignInHint>) -> Wording {
    let source = sentence(sign_in);
    Wording::new(
        "The access token does not permit this call",
        format!("{tool} requires an access token with the scope '{scopes}'.{source}"),
    )
}

fn unknown_tool(qualified: &str, closest: Option<&str>) -> Wording {
    let (name, end) = (clipped_name(qualified), did_you_mean(closest));
    let detail = format!("{name} is not a tool of this server{end}");
    Wording::new(not_found(qualified), detail)
}

/// Returns the end of a sentence, with the id that may be meant.
fn did_you_mean(closest: Option<&str>) -> String {
    closest.map_or(".".to_owned(), |it| format!("; did you mean {it}?"))
}

fn unknown_version(qualified: &str, version: &Version, available: &[Version]) -> Wording {
    let available: Vec<_> = available.iter().map(Version::to_string).collect();
    let mut detail = format!("{qualified} version {version} is not available");
    // The caller's list may have none of them.
    if !available.is_empty() {
        detail = format!("{detail}; available: {}", available.join(", "));
    }
    Wording::new(not_found(qualified), detail)
}

/// Returns the specification's text, with the name that models use for the tool.
fn not_found(qualified: &str) -> String {
    let name = clipped_name(qualified).replace('.', "_");
    format!("Tool '{name}' was not found")
}

fn missing_requirements(missing: &UnmetRequirements) -> Wording {
    let UnmetRequirements {
        tool, requirements, ..
    } = missing;
    let (mut kinds, mut items) = (Vec::new(), Vec::new());
    if !requirements.authorization.is_empty() {
        kinds.push("Authorization");
        let providers = requirements.authorization.iter();
        items.extend(
            providers.map(|it| format!("a token for '{}' in context.authorization", it.id)),
        );
    }
    if requirements.user_id {
        kinds.push("User ID");
        items.push("context.user_id".to_owned());
    }
    if !requirements.secrets.is_empty() {
        kinds.push("Secrets");
        let secrets = requirements.secrets.iter().zip(&missing.places);
        items.extend(secrets.map(|(it, place)| {
            let from_calls = missing.from_calls.then(|| "context.secrets".to_owned());
            let place = match place {
                SecretPlace::Header(name) => Some(format!("the header {name}")),
                SecretPlace::Store(location) => location.clone(),
            };
            let places: Vec<_> = from_calls.into_iter().chain(place).collect();
            format!("the secret '{}' in {}", it.id, places.join(" or in "))
        }));
    }
    let is_temporary = missing
        .unreadable
        .iter()
        .all(|(_, error)| error.is_temporary());
    let message = if missing.unreadable.is_empty() {
        let kinds = kinds.join(", ");
        format!("{kinds} required before this tool can be called")
    } else if is_temporary {
        UNAVAILABLE.to_owned()
    } else {
        "The tool server cannot read a secret that this tool needs".to_owned()
    };
    let unreadable = missing.unreadable.iter();
    items.extend(unreadable.map(|(id, error)| format!("the secret '{id}' ({error})")));
    let detail = format!("{tool} needs {}.", items.join(" and "));
    Wording::new(message, detail)
}
