//! One-word reasons why a call returned no value, for logs, metrics and spans.

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($name:ident = $word:literal,)+) => {
        /// The reason why a call returned no value.
        #[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
        pub enum Reason {
            $(#[doc = concat!("`", $word, "`")] $name,)+
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the reason as a word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

reasons! {
    // Rejections: the call did not reach its tool.
    Unauthenticated = "unauthenticated",
    Undecided = "undecided",
    InsufficientScope = "insufficient_scope",
    NotAllowed = "not_allowed",
    Malformed = "malformed",
    ForbiddenOrigin = "forbidden_origin",
    UnsupportedVersion = "unsupported_version",
    InvalidToolId = "invalid_tool_id",
    UnknownTool = "unknown_tool",
    UnknownVersion = "unknown_version",
    InvalidInput = "invalid_input",
    Busy = "busy",
    MissingRequirements = "missing_requirements",
    UnreadableSecrets = "unreadable_secrets",
    MisdefinedTool = "misdefined_tool",
    CallIdReused = "call_id_reused",
    Unauthorizable = "unauthorizable",
    Unprotected = "unprotected",
    RequiresTask = "requires_task",
    QuotaExceeded = "quota_exceeded",
    Uncounted = "uncounted",
    Unavailable = "unavailable",

    // Failures: the first is the tool's own, the others come from the library.
    Failed = "failed",
    Panicked = "panicked",
    TimedOut = "timed_out",
    NoTime = "no_time",
    Lost = "lost",
    TooLarge = "too_large",
    InvalidOutput = "invalid_output",
    Running = "running",
    CutOff = "cut_off",
    NotKept = "not_kept",
}
