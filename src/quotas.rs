//! Quotas: limits on the number of calls that run in a minute or a day.
//!
#![doc = include_str!("pages.md")]
#![doc = include_str!("../docs/quotas.md")]

pub(crate) mod counters;
mod parse;
mod window;

use std::fmt;

use window::Window;

/// A limit on the number of calls that run in a calendar minute or day of UTC.
///
/// It counts all calls together, or those of each [caller](Self::by_caller), [user](Self::by_user)
/// or [tool](Self::by_tool) separately, or [one tool's](Self::of_tool). Of several such settings, the
/// last one applies.
///
/// ```
/// use lambda_tools::{Server, Toolkit, quotas::Quota};
///
/// let server = Server::new(Toolkit::new([])?)
///     .quota(Quota::per_minute(60).by_caller())
///     .quota(Quota::per_day(10_000));
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    limit: u64,
    window: Window,
    subject: Subject,
    runs_uncounted: bool,
}

/// The calls that a quota counts together.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    /// All calls.
    All,
    /// Those of each caller.
    Caller,
    /// Those of each caller for each user.
    User,
    /// Those of each tool.
    Tool,
    /// Those of this tool; others are not counted.
    OneTool(String),
}

impl Quota {
    /// Limits the calls in a minute. With zero, none run.
    #[must_use]
    pub fn per_minute(limit: u64) -> Self {
        Self::new(limit, Window::Minute, Subject::All)
    }

    /// Limits the calls in a day.
    #[must_use]
    pub fn per_day(limit: u64) -> Self {
        Self::new(limit, Window::Day, Subject::All)
    }

    /// Counts the calls of each [caller](crate::Caller) separately.
    #[must_use]
    pub fn by_caller(mut self) -> Self {
        self.subject = Subject::Caller;
        self
    }

    /// Counts the calls for each user of each caller separately. A caller's calls without a user
    /// count together.
    #[must_use]
    pub fn by_user(mut self) -> Self {
        self.subject = Subject::User;
        self
    }

    /// Counts the calls of each tool separately, and all versions of a tool together.
    #[must_use]
    pub fn by_tool(mut self) -> Self {
        self.subject = Subject::Tool;
        self
    }

    /// Counts only the calls of this tool, such as `SMS.Send`.
    #[must_use]
    pub fn of_tool(mut self, name: impl Into<String>) -> Self {
        self.subject = Subject::OneTool(name.into());
        self
    }

    /// Runs calls uncounted while the store is unreachable, and logs an error for each. Without this
    /// setting, these calls are rejected.
    #[must_use]
    pub fn best_effort(mut self) -> Self {
        self.runs_uncounted = true;
        self
    }

    fn new(limit: u64, window: Window, subject: Subject) -> Self {
        Self {
            limit,
            window,
            subject,
            runs_uncounted: false,
        }
    }

    /// Returns the name of the only tool whose calls are counted, if there is one.
    pub(crate) fn tool(&self) -> Option<&str> {
        match &self.subject {
            Subject::OneTool(name) => Some(name),
            _ => None,
        }
    }

    /// Returns true if both quotas would share their counts.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.window == other.window && self.subject == other.subject
    }

    /// Returns the quota in words: `60 calls per minute for each caller`.
    fn in_words(&self) -> String {
        let calls = crate::text::counted(self.limit, "call", "calls");
        let window = self.window.name();
        match &self.subject {
            Subject::All => format!("{calls} per {window}"),
            Subject::OneTool(name) => format!("{calls} of {name} per {window}"),
            each => format!("{calls} per {window} for each {each}"),
        }
    }
}

/// Writes the subject as in `TOOLS_QUOTAS`: `caller`, `tool:SMS.Send`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Caller => f.write_str("caller"),
            Self::User => f.write_str("user"),
            Self::Tool => f.write_str("tool"),
            Self::OneTool(name) => write!(f, "tool:{name}"),
        }
    }
}
