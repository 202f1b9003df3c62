//! The progress of a call, and its follower.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// The progress of a call, as its tool [reports](crate::Context::progress) it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The amount of work done, in a unit that the tool chooses.
    pub done: f64,
    /// The total amount of work, in the same unit, if it is known.
    pub total: Option<f64>,
    /// A description of the current step, for people.
    pub message: String,
}

/// The recipient of a call's progress. Cheap to clone.
#[derive(Clone)]
pub struct Follower(Arc<Inner>);

struct Inner {
    report: Box<dyn Fn(Progress) + Send + Sync>,
    is_cancelled: AtomicBool,
}

impl Follower {
    /// Creates a follower; `report` must not block.
    pub fn new(report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            report: Box::new(report),
            is_cancelled: AtomicBool::new(false),
        }))
    }

    /// Tells the tool that nobody needs its outcome any more.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn report(&self, progress: Progress) {
        (self.0.report)(progress);
    }
}

#[cfg(test)]
mod tests {
    use std::{f64, sync::mpsc};

    use crate::testing::context;

    #[test]
    fn what_is_no_finite_number_is_ignored() {
        let (sender, reports) = mpsc::channel();
        let cx = context().on_progress(move |it| sender.send(it).unwrap());
        let cx = cx.build();
        let mut expected = Vec::new();
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            cx.progress(number, 1.0, "nowhere");
            cx.progress(1, number, "somewhere");
            expected.push((1.0, None, "somewhere".to_owned()));
        }
        cx.progress(-2.5_f32, None, String::new());
        expected.push((-2.5, None, String::new()));
        let reports = reports.try_iter();
        let reports: Vec<_> = reports.map(|it| (it.done, it.total, it.message)).collect();
        assert_eq!(reports, expected);
    }

    #[test]
    fn messages_are_redacted() {
        let (sender, reports) = mpsc::channel();
        let cx = context()
            .secret("KEY", "a-secret-of-this-tool")
            .token("google", "a-token-of-this-user")
            .on_progress(move |it| sender.send(it).unwrap());
        let cx = cx.build();
        for sent in ["a-secret-of-this-tool", "a-token-of-this-user", "a letter"] {
            cx.progress(1, None, format!("sends {sent} to Google"));
        }
        let messages: Vec<_> = reports.try_iter().map(|it| it.message).collect();
        let redacted = "sends [secret] to Google";
        assert_eq!(messages, [redacted, redacted, "sends a letter to Google"]);
    }

    #[test]
    fn without_a_follower_nothing_happens() {
        let cx = context().build();
        cx.progress(1, 2.0, "alone");
        assert!(!cx.is_cancelled());
    }
}
