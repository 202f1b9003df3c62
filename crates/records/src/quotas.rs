//! Quotas: limits on the number of calls that run in a minute or a day.

mod counters;

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::clock::since_epoch;
pub use counters::{CountedCall, ExceededQuota, Quotas};

/// A limit on the number of calls that run in a calendar minute or day of UTC.
///
/// It counts all calls together, or those of each [caller](Self::by_caller), [user](Self::by_user)
/// or [tool](Self::by_tool) separately, or [one tool's](Self::of_tool). Of several such settings, the
/// last one applies.
///
/// ```
/// # use lambda_tools_records as lambda_tools;
/// use lambda_tools::quotas::Quota;
///
/// // For `Server::quota`.
/// let quotas = [Quota::per_minute(60).by_caller(), Quota::per_day(10_000)];
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    limit: u64,
    window: Window,
    subject: Subject,
}

/// The calls that a quota counts together.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    /// Those of each caller for each user.
    User,
    /// Those of each caller.
    Caller,
    /// Those of each tool.
    Tool,
    /// Those of this tool; others are not counted.
    OneTool(String),
    /// All calls.
    All,
}

/// A part of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Window {
    Minute,
    Day,
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

    fn new(limit: u64, window: Window, subject: Subject) -> Self {
        Self {
            limit,
            window,
            subject,
        }
    }

    /// Parses a quota such as `caller=5/minute`.
    pub fn parse(text: &str) -> Option<Self> {
        let (subject, rate) = text.split_once('=')?;
        let (limit, window) = rate.split_once('/')?;
        let window = Window::ALL.into_iter().find(|it| it.name() == window)?;
        let limit = limit.parse().ok().filter(|_| !limit.starts_with('+'))?;
        Some(Self::new(limit, window, Subject::parse(subject)?))
    }

    /// Returns the name of the only tool whose calls are counted, if there is one.
    pub fn tool(&self) -> Option<&str> {
        match &self.subject {
            Subject::OneTool(name) => Some(name),
            _ => None,
        }
    }

    /// Returns true if both quotas would share their counts.
    pub fn overlaps(&self, other: &Self) -> bool {
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

impl Window {
    const ALL: [Self; 2] = [Self::Minute, Self::Day];

    fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Day => "day",
        }
    }

    fn length(self) -> Duration {
        match self {
            Self::Minute => Duration::from_mins(1),
            Self::Day => Duration::from_hours(24),
        }
    }

    /// Returns the end of the window around this time.
    fn end(self, now: SystemTime) -> SystemTime {
        let (seconds, length) = (since_epoch(now).as_secs(), self.length().as_secs());
        UNIX_EPOCH + Duration::from_secs(seconds - seconds % length + length)
    }
}

impl Subject {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "all" => Self::All,
            "caller" => Self::Caller,
            "user" => Self::User,
            "tool" => Self::Tool,
            other => {
                let name = other.strip_prefix("tool:")?;
                let is_name = !name.is_empty() && !name.contains('+');
                Self::OneTool(is_name.then(|| name.to_owned())?)
            }
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_have_a_subject_a_limit_and_a_window() {
        for (text, expected) in [
            ("all=100000/day", Quota::per_day(100_000)),
            ("caller=60/minute", Quota::per_minute(60).by_caller()),
            ("user=0/day", Quota::per_day(0).by_user()),
            ("tool=7/day", Quota::per_day(7).by_tool()),
            ("tool:SMS.Send=7/day", Quota::per_day(7).of_tool("SMS.Send")),
        ] {
            assert_eq!(Quota::parse(text).as_ref(), Some(&expected), "{text}");
            let (limit, window) = (expected.limit, expected.window.name());
            assert_eq!(format!("{}={limit}/{window}", expected.subject), text);
        }
        let invalid = ",all,all=1,all=1/week,all=+1/day,all=-1/day,all=/day,all=1.5/day,\
            all=99999999999999999999/day,=1/day,caller+tool=1/day,tool:A.B+caller=1/day,\
            tool:=1/day,everybody=1/day,caller = 1/day";
        for text in invalid.split(',') {
            assert_eq!(Quota::parse(text), None, "{text}");
        }
    }

    #[test]
    fn windows_are_those_of_the_calendar() {
        use Window::{Day, Minute};

        // From `date -u -d @… +%FT%TZ`.
        for (seconds, window, end) in [
            (1_709_210_096, Minute, 1_709_210_100),
            (1_709_210_096, Day, 1_709_251_200),
            (1_735_689_599, Day, 1_735_689_600),
            (1_735_689_600, Day, 1_735_776_000),
        ] {
            let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(window.end(at(seconds)), at(end), "{seconds}");
        }
    }
}
