//! The deaths, freezes and delays that the plan of a run demands.

use std::{sync::atomic::Ordering, time::Duration};

use super::{POLL, Run};
use crate::{
    history::Attempt,
    plan::{Death, Freeze, Step},
};

impl Run {
    /// The planned death at a step of an attempt, the first time that it is reached.
    pub(crate) fn death_at(&self, attempt: Attempt, step: Step) -> Option<Death> {
        let death = self.plan.attempt(attempt).death?;
        let mut attempts = self.attempts.lock().unwrap();
        if death.step != step || attempts.dead.contains(&attempt) {
            return None;
        }
        attempts.dead.push(attempt);
        Some(death)
    }

    /// The planned freeze at a step of an attempt, the first time that it is reached.
    pub(crate) fn freeze_at(&self, attempt: Attempt, step: Step) -> Option<Freeze> {
        let freeze = self.plan.attempt(attempt).freeze?;
        let frozen = &mut self.attempts.lock().unwrap().frozen;
        if freeze.step != step || frozen.contains(&attempt) {
            return None;
        }
        frozen.push(attempt);
        Some(freeze)
    }

    /// Notes that an attempt has claimed the call.
    pub(crate) fn claimed(&self, attempt: Attempt) {
        self.attempts.lock().unwrap().claimed.push(attempt);
    }

    /// Waits until an attempt after this one has claimed the call, and then some time; or until the
    /// clients have their outcomes.
    pub(crate) async fn overtaken(&self, attempt: Attempt, delay: Duration) {
        let is_overtaken = || {
            let claimed = &self.attempts.lock().unwrap().claimed;
            claimed.iter().any(|other| *other > attempt)
        };
        while !is_overtaken() {
            if self.is_closing.load(Ordering::Relaxed) {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
        tokio::time::sleep(delay).await;
    }

    /// Carries out something that the run's end must wait for.
    pub(crate) async fn awaited<T>(&self, work: impl Future<Output = T>) -> T {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = work.await;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// The time after which a request arrives whose process has died; `None` if it is lost.
    pub(crate) fn in_flight(&self, attempt: Attempt) -> Option<Duration> {
        self.plan.attempt(attempt).death?.in_flight
    }
}
