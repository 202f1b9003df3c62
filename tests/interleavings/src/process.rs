//! A process: a runtime of its own, whose time passes only when the search says so.

use std::{
    cell::RefCell,
    time::{Duration, Instant, SystemTime},
};

use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
    time,
};

use crate::Call;

/// The time at which every execution starts: 5 October 2023, 12:00:00 UTC.
const START: Duration = Duration::from_hours(471_252);

/// The process that runs at present.
#[derive(Clone, Copy)]
struct Current {
    number: usize,
    origin: time::Instant,
    /// The time by which the clock is ahead.
    lead: Duration,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

fn current() -> Current {
    CURRENT.with_borrow(|current| current.expect("only processes read the clock"))
}

pub(crate) fn current_process() -> usize {
    current().number
}

/// The clock of the current process.
pub(crate) fn wall() -> SystemTime {
    let it = current();
    SystemTime::UNIX_EPOCH + START + it.origin.elapsed() + it.lead
}

/// Its monotonic clock.
pub(crate) fn instant() -> Instant {
    time::Instant::now().into_std()
}

/// A process that has not crashed.
pub(crate) struct Process {
    runtime: Runtime,
    current: Current,
}

impl Process {
    pub(crate) fn new(number: usize, lead: Duration, now: Duration) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs nothing");
        let origin = runtime.block_on(async { time::Instant::now() });
        let current = Current {
            number,
            origin: origin - now,
            lead,
        };
        Self { runtime, current }
    }

    /// Runs a future in the process, and then everything that can run without a response or time.
    fn enter(&self, future: impl Future<Output = ()>) {
        /// A yielding task continues after 61 polls of others, or when no other one can run.
        const YIELDS: usize = 4;
        CURRENT.set(Some(self.current));
        self.runtime.block_on(async {
            future.await;
            for _ in 0..YIELDS {
                yield_now().await;
            }
        });
    }

    pub(crate) fn start(&self, call: Call) {
        self.enter(async {
            tokio::spawn(call);
        });
    }

    pub(crate) fn proceed(&self) {
        self.enter(async {});
    }

    /// Lets time pass, timer by timer.
    pub(crate) fn pass_until(&self, now: Duration) {
        let end = self.current.origin + now;
        self.enter(async move { time::sleep_until(end).await });
    }

    /// Continues after the process was suspended: its monotonic clock has stood still.
    pub(crate) fn resume_at(&mut self, now: Duration) {
        let origin = self.current.origin;
        let elapsed = self.runtime.block_on(async { origin.elapsed() });
        self.current.origin -= now.saturating_sub(elapsed);
        self.proceed();
    }

    /// True if a task of the process has not ended.
    pub(crate) fn is_busy(&self) -> bool {
        self.runtime.metrics().num_alive_tasks() > 0
    }
}

impl Drop for Process {
    /// Lets the tasks, which end afterwards with the runtime, still read the clock.
    fn drop(&mut self) {
        CURRENT.set(Some(self.current));
    }
}
