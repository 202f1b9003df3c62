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

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Follower")
    }
}

#[cfg(test)]
mod tests {
    use std::{f64, sync::mpsc};

    use super::*;
    use crate::testing::context;

    fn report(done: f64, total: Option<f64>, message: &str) -> Progress {
        Progress {
            done,
            total,
            message: message.to_owned(),
        }
    }

    #[test]
    fn what_is_no_finite_number_is_ignored() {
        let (sender, reports) = mpsc::channel();
        let cx = context().on_progress(move |it| sender.send(it).unwrap());
        let cx = cx.build();
        for done in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            cx.progress(done, 1.0, "nowhere");
        }
        for total in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            cx.progress(1, total, "somewhere");
        }
        cx.progress(-2.5_f32, None, String::new());
        let somewhere = report(1.0, None, "somewhere");
        let expected = [
            somewhere.clone(),
            somewhere.clone(),
            somewhere,
            report(-2.5, None, ""),
        ];
        assert_eq!(reports.try_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn messages_are_redacted() {
        let (sender, reports) = mpsc::channel();
        let cx = context()
            .secret("KEY", "a-secret-of-this-tool")
            .token("google", "a-token-of-this-user")
            .on_progress(move |it| sender.send(it).unwrap());
        let cx = cx.build();
        cx.progress(1, None, "sends a-secret-of-this-tool to Google");
        cx.progress(2, None, "sends a-token-of-this-user to Google");
        cx.progress(3, None, "sends a letter to Google");
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
