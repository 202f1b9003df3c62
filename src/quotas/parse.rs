//! Quotas as text, in the setting `TOOLS_QUOTAS`.

use super::{CountedTools, Quota, window::Window};

impl Quota {
    /// Parses a quota such as `caller+tool=5/minute`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (subject, rate) = text.split_once('=')?;
        let (limit, window) = rate.split_once('/')?;
        let window = Window::ALL.into_iter().find(|it| it.name() == window)?;
        let is_number = !limit.is_empty() && limit.bytes().all(|it| it.is_ascii_digit());
        let quota = Self::new(limit.parse().ok().filter(|_| is_number)?, window);
        if subject == "all" {
            return Some(quota);
        }
        let mut parts = subject.split('+');
        parts.try_fold(quota, Self::with_part)
    }

    /// Adds a part of the subject, which may occur once.
    fn with_part(self, part: &str) -> Option<Self> {
        let is_first = match part {
            "caller" => !self.by_caller,
            "user" => !self.by_user,
            _ => self.tools == CountedTools::All,
        };
        let quota = match part {
            "caller" => self.by_caller(),
            "user" => self.by_user(),
            "tool" => self.by_tool(),
            other => self.of_tool(other.strip_prefix("tool:").filter(|it| !it.is_empty())?),
        };
        is_first.then_some(quota)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_have_a_subject_a_limit_and_a_window() {
        for (text, expected) in [
            ("all=100000/month", Quota::per_month(100_000)),
            ("caller=60/minute", Quota::per_minute(60).by_caller()),
            ("user=0/day", Quota::per_day(0).by_user()),
            ("tool=7/hour", Quota::per_hour(7).by_tool()),
            (
                "tool:SMS.Send=7/hour",
                Quota::per_hour(7).of_tool("SMS.Send"),
            ),
            (
                "tool+user+caller=1/day",
                Quota::per_day(1).by_caller().by_user().by_tool(),
            ),
            (
                "caller+tool:A.B=1/day",
                Quota::per_day(1).by_caller().of_tool("A.B"),
            ),
        ] {
            assert_eq!(Quota::parse(text).as_ref(), Some(&expected), "{text}");
            let text = format!(
                "{}={}/{}",
                expected.subject(),
                expected.limit,
                expected.window.name()
            );
            assert_eq!(Quota::parse(&text), Some(expected), "{text}");
        }
        for text in [
            "",
            "all",
            "all=1",
            "all=1/week",
            "all=+1/day",
            "all=-1/day",
            "all=/day",
            "all=1.5/day",
            "all=99999999999999999999/day",
            "=1/day",
            "all+caller=1/day",
            "caller+caller=1/day",
            "tool+tool:A.B=1/day",
            "tool:=1/day",
            "everybody=1/day",
            "caller = 1/day",
        ] {
            assert_eq!(Quota::parse(text), None, "{text}");
        }
    }
}
