//! Quotas: limits on the number of calls that run in a minute, an hour, a day or a month.
//!
#![doc = include_str!("pages.md")]
#![doc = include_str!("../docs/quotas.md")]

pub(crate) mod counters;
mod parse;
mod window;

use window::Window;

/// A limit on the number of calls that run in a calendar minute, hour, day or month of UTC.
///
/// It counts all calls together, or those of each [caller](Self::by_caller), [user](Self::by_user)
/// or [tool](Self::by_tool) separately.
///
/// ```
/// use lambda_tools::{Server, Toolkit, quotas::Quota};
///
/// let server = Server::new(Toolkit::new([])?)
///     .quota(Quota::per_minute(60).by_caller())
///     .quota(Quota::per_month(100_000));
/// # Ok::<(), lambda_tools::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    limit: u64,
    window: Window,
    by_caller: bool,
    by_user: bool,
    tools: CountedTools,
    runs_uncounted: bool,
}

/// The tools whose calls a quota counts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CountedTools {
    /// All tools, together.
    All,
    /// Each tool separately.
    Each,
    /// This tool only.
    One(String),
}

impl Quota {
    /// Limits the calls in a minute. With zero, none run.
    #[must_use]
    pub fn per_minute(limit: u64) -> Self {
        Self::new(limit, Window::Minute)
    }

    /// Limits the calls in an hour.
    #[must_use]
    pub fn per_hour(limit: u64) -> Self {
        Self::new(limit, Window::Hour)
    }

    /// Limits the calls in a day.
    #[must_use]
    pub fn per_day(limit: u64) -> Self {
        Self::new(limit, Window::Day)
    }

    /// Limits the calls in a month.
    #[must_use]
    pub fn per_month(limit: u64) -> Self {
        Self::new(limit, Window::Month)
    }

    /// Counts the calls of each [caller](crate::Caller) separately.
    #[must_use]
    pub fn by_caller(mut self) -> Self {
        self.by_caller = true;
        self
    }

    /// Counts the calls for each user of each caller separately. A caller's calls without a user
    /// count together.
    #[must_use]
    pub fn by_user(mut self) -> Self {
        self.by_user = true;
        self
    }

    /// Counts the calls of each tool separately, and all versions of a tool together.
    #[must_use]
    pub fn by_tool(mut self) -> Self {
        self.tools = CountedTools::Each;
        self
    }

    /// Counts only the calls of this tool, such as `SMS.Send`.
    #[must_use]
    pub fn of_tool(mut self, name: impl Into<String>) -> Self {
        self.tools = CountedTools::One(name.into());
        self
    }

    /// Runs calls uncounted while the store is unreachable, and logs an error for each. Without this
    /// setting, these calls are rejected.
    #[must_use]
    pub fn best_effort(mut self) -> Self {
        self.runs_uncounted = true;
        self
    }

    fn new(limit: u64, window: Window) -> Self {
        Self {
            limit,
            window,
            by_caller: false,
            by_user: false,
            tools: CountedTools::All,
            runs_uncounted: false,
        }
    }

    /// Returns the name of the only tool whose calls are counted, if there is one.
    pub(crate) fn tool(&self) -> Option<&str> {
        match &self.tools {
            CountedTools::One(name) => Some(name),
            CountedTools::All | CountedTools::Each => None,
        }
    }

    /// Returns true if both quotas would share their counts.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.window == other.window && self.subject() == other.subject()
    }

    /// Returns what is counted separately, as in `TOOLS_QUOTAS`: `caller+tool:SMS.Send`.
    fn subject(&self) -> String {
        let tool = match &self.tools {
            CountedTools::All => None,
            CountedTools::Each => Some("tool".to_owned()),
            CountedTools::One(name) => Some(format!("tool:{name}")),
        };
        let caller = self.by_caller.then(|| "caller".to_owned());
        let user = self.by_user.then(|| "user".to_owned());
        let parts: Vec<_> = [caller, user, tool].into_iter().flatten().collect();
        if parts.is_empty() {
            return "all".to_owned();
        }
        parts.join("+")
    }

    /// Returns the quota in words: `60 calls of SMS.Send per minute for each caller`.
    fn in_words(&self) -> String {
        let calls = crate::text::counted(self.limit, "call", "calls");
        let of = self.tool().map(|name| format!(" of {name}"));
        let tool = self.tools == CountedTools::Each;
        let each = [
            (self.by_caller, "caller"),
            (self.by_user, "user"),
            (tool, "tool"),
        ];
        let each = each.into_iter().filter(|(counts, _)| *counts);
        let each: Vec<_> = each.map(|(_, name)| name).collect();
        let by = match &*each {
            [] => String::new(),
            each => format!(" for each {}", each.join(" and ")),
        };
        let (of, window) = (of.unwrap_or_default(), self.window.name());
        format!("{calls}{of} per {window}{by}")
    }
}
