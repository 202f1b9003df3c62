//! The numbers of requests and of wrong answers.

use std::collections::BTreeMap;

use crate::function::Answer;

/// The number of wrong answers that the report quotes.
const QUOTED: usize = 10;

/// The requests of one kind.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) requests: u64,
    /// Errors that the failing store explains.
    pub(crate) store_errors: u64,
    pub(crate) wrong: u64,
}

/// All requests to a function.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) kinds: BTreeMap<&'static str, Count>,
    /// The first wrong answers.
    pub(crate) details: Vec<String>,
}

impl Tally {
    pub(crate) fn sum(&self, number: impl Fn(&Count) -> u64) -> u64 {
        self.kinds.values().map(number).sum()
    }

    /// Counts an answer; returns true if it is right. `mistake` says what is wrong with it.
    pub(crate) fn count(
        &mut self,
        kind: &'static str,
        answer: &Answer,
        mistake: Option<&str>,
    ) -> bool {
        let count = self.kinds.entry(kind).or_default();
        count.requests += 1;
        match mistake {
            Some(_) if answer.is_store_error() => count.store_errors += 1,
            Some(mistake) => self.wrong(kind, mistake, answer),
            None => {}
        }
        mistake.is_none()
    }

    pub(crate) fn wrong(&mut self, kind: &'static str, mistake: &str, answer: &Answer) {
        self.kinds.entry(kind).or_default().wrong += 1;
        if self.details.len() < QUOTED {
            let Answer { status, text, .. } = answer;
            let detail = format!("{kind}: {mistake}; {status} {text:.600}");
            self.details.push(detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_counted_unless_the_store_explains_it() {
        let mut tally = Tally::default();
        let mut answer = Answer {
            status: 400,
            text: r#"{"message":"The tool server is temporarily unavailable"}"#.into(),
            ..Answer::default()
        };
        assert!(tally.count("call", &answer, None));
        assert!(!tally.count("call", &answer, Some("no sum")));
        let count = &tally.kinds["call"];
        assert_eq!((count.requests, count.wrong), (2, 1));
        answer.store_failures = 1;
        assert!(!tally.count("call", &answer, Some("no sum")));
        let count = &tally.kinds["call"];
        assert_eq!((count.store_errors, count.wrong), (1, 1));
        answer.text = r#"{"value":{"sum":8}}"#.into();
        assert!(!tally.count("call", &answer, Some("another sum")));
        assert_eq!(tally.sum(|it| it.wrong), 2);
        assert!(tally.details[1].contains("another sum"));
    }
}
