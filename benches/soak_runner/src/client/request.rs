//! Sends a request, and judges its answer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::Client;
use crate::{
    answer::{Answer, Expected},
    event::Event,
};

/// The longest time in which a client gets an answer: all others may have to wait for the store.
const ANSWER_LIMIT: Duration = Duration::from_secs(90);

impl Client {
    /// Sends a request at its time, and lets `judge` decide on the answer. Returns the answer if it
    /// is right; `judge` returns true if it is an error of the failing store.
    pub(super) async fn send(
        &mut self,
        kind: &'static str,
        event: Event,
        judge: impl FnOnce(&Answer) -> Result<bool, String>,
    ) -> Option<Answer> {
        tokio::time::sleep_until(self.next.into()).await;
        // After a break, such as a slow store, nothing is made up for.
        let now = Instant::now();
        self.next = (self.next + self.shared.interval).max(now);
        let recorder = &self.shared.recorder;
        let server = &self.shared.server;
        let answered = server.respond(event, &mut self.connection, ANSWER_LIMIT);
        let Some((answer, time)) = answered.await else {
            // At the end, events remain in the queue.
            if !self.is_over() {
                recorder.wrong(kind, "no answer");
            }
            return None;
        };
        let judged = answer.and_then(|answer| {
            let is_store_error = judge(&answer)?;
            Ok((answer, is_store_error))
        });
        match judged {
            Ok((answer, is_store_error)) => {
                recorder.answered(kind, time, is_store_error);
                (!is_store_error).then_some(answer)
            }
            Err(detail) => {
                recorder.answered(kind, time, false);
                recorder.wrong(kind, &detail);
                None
            }
        }
    }

    /// Sends a request that has exactly one right answer.
    pub(super) async fn expect(
        &mut self,
        kind: &'static str,
        event: Event,
        expected: &Expected,
    ) -> Option<Answer> {
        let judge = |answer: &Answer| expected.judge(answer).map(|()| false);
        self.send(kind, event, judge).await
    }

    /// Sends a request whose answer never changes: the first one is checked, and all others equal it.
    pub(super) async fn compare(
        &mut self,
        kind: &'static str,
        name: &str,
        event: Event,
        check: impl FnOnce(&Answer) -> Result<(), String>,
    ) -> Option<Answer> {
        let shared = Arc::clone(&self.shared);
        let judge = |answer: &Answer| {
            let mut references = shared.references.lock().expect("no thread panics");
            let Some(first) = references.get(name) else {
                check(answer).map_err(|error| format!("{name}: {error}; {}", answer.quoted()))?;
                references.insert(name.to_owned(), answer.clone());
                return Ok(false);
            };
            let is_same = answer.status == first.status
                && answer.headers == first.headers
                && answer.body == first.body;
            if is_same {
                return Ok(false);
            }
            let (first, answer) = (first.quoted(), answer.quoted());
            Err(format!("{name}: first {first}, now {answer}"))
        };
        self.send(kind, event, judge).await
    }
}

/// Judges an answer that may be an error because the store has failed meanwhile.
pub(super) fn or_store_error(
    answer: &Answer,
    expected: &Expected,
    unavailable: &Expected,
) -> Result<bool, String> {
    let Err(error) = expected.judge(answer) else {
        return Ok(false);
    };
    if answer.store_failures > 0 && unavailable.judge(answer).is_ok() {
        return Ok(true);
    }
    let failures = answer.store_failures;
    Err(format!("{error}; the store failed {failures} requests"))
}
