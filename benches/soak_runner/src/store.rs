//! The table of calls and grants, which fails for one minute in each ten.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant, SystemTime},
};

use test_support::dynamodb::{
    Applied, DynamoDb, Fault, Interception, Interceptor, OnRequest, OnResponse, Request,
};

/// The name of the table.
pub(crate) const TABLE: &str = "soak";

/// When the store fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// The time from one failing period to the next.
    pub(crate) cycle: Duration,
    /// The begin of the failing period within a cycle.
    pub(crate) begin: Duration,
    /// The length of the failing period.
    pub(crate) length: Duration,
}

impl Schedule {
    /// The share of the failing period that has passed, if the store fails `at` this time of the
    /// run.
    fn progress(&self, at: Duration) -> Option<f64> {
        let cycle = self.cycle.as_secs_f64();
        let since = at.as_secs_f64() % cycle - self.begin.as_secs_f64();
        let progress = since / self.length.as_secs_f64();
        (0.0..1.0).contains(&progress).then_some(progress)
    }

    /// True if the store fails `at` this time of the run.
    pub(crate) fn fails(&self, at: Duration) -> bool {
        self.progress(at).is_some()
    }
}

/// The ways in which the store fails, each for a sixth of the failing period.
#[derive(Clone, Copy)]
enum Mode {
    Internal,
    Closed,
    Throttled,
    Unavailable,
    /// The request is applied, and its response is lost.
    Unanswered,
    /// Some requests fail, in one of the other ways.
    Mixed,
}

const MODES: [Mode; 6] = [
    Mode::Internal,
    Mode::Closed,
    Mode::Throttled,
    Mode::Unavailable,
    Mode::Unanswered,
    Mode::Mixed,
];

/// Fails requests during the failing periods, and counts them.
struct Failing {
    schedule: Schedule,
    start: Instant,
    failures: Arc<AtomicU64>,
}

impl Failing {
    /// The way in which this request fails, if it does.
    fn mode(&self, request: &Request) -> Option<Mode> {
        let progress = self.schedule.progress(self.start.elapsed())?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number from 0 to 5"
        )]
        let mode = MODES[(progress * 6.0) as usize];
        match mode {
            // Neighbouring requests differ, so that a retry may succeed.
            Mode::Mixed => MODES[..5]
                .get(usize::try_from(request.number % 10).ok()?)
                .copied(),
            mode => Some(mode),
        }
    }
}

impl Interceptor for Failing {
    fn on_request<'a>(&'a self, request: &'a Request) -> Interception<'a, OnRequest> {
        let treatment = match self.mode(request) {
            None | Some(Mode::Unanswered | Mode::Mixed) => OnRequest::Apply,
            Some(Mode::Closed) => OnRequest::Lose,
            Some(Mode::Internal) => OnRequest::Fail(Fault::Internal),
            Some(Mode::Throttled) => OnRequest::Fail(Fault::ThroughputExceeded),
            Some(Mode::Unavailable) => OnRequest::Fail(Fault::Unavailable),
        };
        if treatment != OnRequest::Apply {
            self.failures.fetch_add(1, SeqCst);
        }
        Box::pin(ready(treatment))
    }

    fn on_response<'a>(
        &'a self,
        request: &'a Request,
        _: &'a Applied,
    ) -> Interception<'a, OnResponse> {
        let treatment = match self.mode(request) {
            Some(Mode::Unanswered) => OnResponse::Lose,
            _ => OnResponse::Send,
        };
        if treatment != OnResponse::Send {
            self.failures.fetch_add(1, SeqCst);
        }
        Box::pin(ready(treatment))
    }
}

/// A table that fails as scheduled.
pub(crate) struct Store {
    table: DynamoDb,
    /// The number of requests that have failed.
    pub(crate) failures: Arc<AtomicU64>,
}

impl Store {
    pub(crate) async fn start(schedule: Schedule, start: Instant) -> Self {
        let failures = Arc::<AtomicU64>::default();
        let failing = Failing {
            schedule,
            start,
            failures: Arc::clone(&failures),
        };
        Self {
            table: DynamoDb::intercepted(TABLE, Arc::new(failing)).await,
            failures,
        }
    }

    pub(crate) fn url(&self) -> String {
        self.table.url()
    }

    /// The numbers of requests, of failed ones among them, and of items.
    pub(crate) fn figures(&self) -> (u64, u64, usize) {
        let failures = self.failures.load(Relaxed);
        (self.table.requests(), failures, self.table.len())
    }

    /// Deletes expired items, as time to live does.
    pub(crate) fn delete_expired(&self) {
        self.table.delete_expired(SystemTime::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_minute_in_each_ten_fails() {
        let schedule = Schedule {
            cycle: Duration::from_mins(10),
            begin: Duration::from_mins(3),
            length: Duration::from_mins(1),
        };
        let failing: Vec<_> = (0..60)
            .filter(|minute| schedule.fails(Duration::from_mins(*minute)))
            .collect();
        assert_eq!(failing, [3, 13, 23, 33, 43, 53]);
        assert!(schedule.fails(Duration::from_secs(239)));
        assert!(!schedule.fails(Duration::from_mins(4)));
    }
}
