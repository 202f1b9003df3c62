//! The table of calls and challenges, which fails for a tenth of the time.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use test_support::dynamodb::{
    Applied, Fault, Interception, Interceptor, OnRequest, OnResponse, Request,
};

/// The ways in which the store fails, each for a fifth of the failing period. In the last one,
/// requests are applied and their responses are lost.
const FAULTS: [OnRequest; 5] = [
    OnRequest::Fail(Fault::Internal),
    OnRequest::Lose,
    OnRequest::Fail(Fault::ThroughputExceeded),
    OnRequest::Fail(Fault::Unavailable),
    OnRequest::Apply,
];

/// Fails requests for a tenth of each cycle, and counts them.
pub(crate) struct Failing {
    pub(crate) begin: Instant,
    /// The time from one failing period to the next.
    pub(crate) cycle: Duration,
    pub(crate) failures: Arc<AtomicU64>,
}

impl Failing {
    /// Returns the way in which the store fails now, if it does, and counts it.
    fn fault(&self) -> Option<OnRequest> {
        let cycles = self.begin.elapsed().as_secs_f64() / self.cycle.as_secs_f64();
        let progress = (cycles.fract() - 0.3) * 10.0;
        if !(0.0..1.0).contains(&progress) {
            return None;
        }
        self.failures.fetch_add(1, SeqCst);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number from 0 to 4"
        )]
        Some(FAULTS[(progress * 5.0) as usize])
    }
}

impl Interceptor for Failing {
    fn on_request<'a>(&'a self, _: &'a Request) -> Interception<'a, OnRequest> {
        Box::pin(ready(self.fault().unwrap_or(OnRequest::Apply)))
    }

    fn on_response<'a>(&'a self, _: &'a Request, _: &'a Applied) -> Interception<'a, OnResponse> {
        let fault = self.fault();
        Box::pin(ready(fault.map_or(OnResponse::Send, |_| OnResponse::Lose)))
    }
}
