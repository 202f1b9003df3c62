//! Quotas as text, in the setting `TOOLS_QUOTAS`.

use super::{Quota, Subject, window::Window};

impl Quota {
    /// Parses a quota such as `caller=5/minute`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (subject, rate) = text.split_once('=')?;
        let (limit, window) = rate.split_once('/')?;
        let window = Window::ALL.into_iter().find(|it| it.name() == window)?;
        let is_number = !limit.is_empty() && limit.bytes().all(|it| it.is_ascii_digit());
        let limit = limit.parse().ok().filter(|_| is_number)?;
        Some(Self::new(limit, window, Subject::parse(subject)?))
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
            let Quota {
                limit,
                window,
                subject,
                ..
            } = &expected;
            let written = format!("{subject}={limit}/{}", window.name());
            assert_eq!(written, text);
        }
        let invalid = ",all,all=1,all=1/week,all=+1/day,all=-1/day,all=/day,all=1.5/day,\
            all=99999999999999999999/day,=1/day,caller+tool=1/day,tool:A.B+caller=1/day,\
            tool:=1/day,everybody=1/day,caller = 1/day";
        for text in invalid.split(',') {
            assert_eq!(Quota::parse(text), None, "{text}");
        }
    }
}
