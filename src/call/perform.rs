//! Performing a call that was handed over.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::{select, sync::watch, time::sleep};

use super::{Outcome, Rejection, prepare::PreparedCall};
use crate::{
    idempotency::deduplication::Claim,
    text::{LONGEST_SHOWN, clipped},
    tool::{
        output::Output,
        progress::{Follower, Progress},
    },
};

/// The time between two notes about the progress of a task.
const BETWEEN_NOTES: Duration = Duration::from_secs(1);

/// The notes without progress after which the task looks whether it is cancelled.
const QUIET_NOTES: u32 = 2;

impl PreparedCall {
    /// Performs a call that was handed over, and records how far it has got and how it ended.
    pub(super) async fn perform_task(mut self, mut claim: Claim) -> Result<Outcome, Rejection> {
        let (reports, mut latest) = watch::channel(None);
        let follower = Follower::new(move |progress| {
            reports.send_replace(Some(progress));
        });
        self.valid.execution.follower = Some(follower.clone());
        let deduplication = Arc::clone(&self.valid.execution.engine.deduplication);
        let _running = deduplication.count_running();
        let reauthorization = self.reauthorization();
        let until = claim.until();
        let (outcome, end) = {
            let mut run = pin!(self.run(until));
            let mut quiet = 0;
            loop {
                select! {
                    done = &mut run => break done,
                    () = sleep(BETWEEN_NOTES) => {}
                }
                let changed = latest.has_changed().unwrap_or(false);
                quiet = if changed { 0 } else { quiet + 1 };
                if !changed && quiet < QUIET_NOTES {
                    continue;
                }
                quiet = 0;
                let message = changed.then(|| latest.borrow_and_update().as_ref().map(text_of));
                select! {
                    done = &mut run => break done,
                    noted = deduplication.note(&mut claim, message.flatten()) => match noted {
                        Ok(true) => follower.cancel(),
                        Ok(false) => {}
                        Err(error) => tracing::warn!(%error, "the progress of a task is not recorded"),
                    },
                }
            }
        };
        let mut outcome = match reauthorization {
            Some(it) => it.challenge_instead_of(outcome).await?,
            None => outcome,
        };
        outcome.result = outcome.result.map(Output::into_json);
        deduplication
            .settle(claim, outcome.duration, &outcome.result, end)
            .await;
        Ok(outcome)
    }
}

/// Returns the text of a report, of a length that any store can keep.
fn text_of(progress: &Progress) -> String {
    let done = &progress.done;
    match (&*progress.message, progress.total) {
        ("", None) => done.to_string(),
        ("", Some(total)) => format!("{done} of {total}"),
        (message, _) => clipped(message, LONGEST_SHOWN).into_owned(),
    }
}
