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
use uuid::Uuid;

use super::Call;
use crate::clock::Clock;

/// The time at which every execution starts: 5 October 2023, 12:00:00 UTC.
pub(crate) const START: Duration = Duration::from_hours(471_252);

/// The clock of the current process.
pub(crate) const CLOCK: Clock = Clock::new(wall, instant, Uuid::new_v4);

/// The process that runs at present.
#[derive(Clone, Copy)]
struct Current {
    number: usize,
    origin: time::Instant,
    /// The time by which the clock is ahead.
    lead: Duration,
    /// The time for which the clock has stood still.
    lag: Duration,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

fn current() -> Current {
    CURRENT.with_borrow(|current| current.expect("only processes read the clock"))
}

/// True in the processes of a search.
#[cfg(feature = "oauth")]
pub(crate) fn is_exploring() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

pub(crate) fn current_process() -> usize {
    current().number
}

fn wall() -> SystemTime {
    let Current {
        origin, lead, lag, ..
    } = current();
    SystemTime::UNIX_EPOCH + START + origin.elapsed() + lead - lag
}

fn instant() -> Instant {
    time::Instant::now().into_std()
}

/// The effect on the clocks of a process that stops running for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freeze {
    /// Both clocks go on, as if the process got no processor time.
    Stopped,
    /// The monotonic clock stands still, as if the machine were suspended.
    Suspended,
    /// Both clocks stand still. No process can notice this; a search must find a violation.
    Unnoticed,
}

/// A process that has not crashed.
pub(super) struct Process {
    runtime: Runtime,
    current: Current,
}

impl Process {
    pub(super) fn new(number: usize, lead: Duration, now: Duration) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs nothing");
        let origin = runtime.block_on(async { time::Instant::now() });
        let current = Current {
            number,
            origin,
            lead,
            lag: Duration::ZERO,
        };
        let mut process = Self { runtime, current };
        process.continue_at(now, Freeze::Stopped);
        process
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
        CURRENT.set(None);
    }

    pub(super) fn start(&self, call: Call) {
        self.enter(async {
            tokio::spawn(call);
        });
    }

    pub(super) fn proceed(&self) {
        self.enter(async {});
    }

    /// Lets time pass, timer by timer.
    pub(super) fn pass_until(&self, now: Duration) {
        let end = self.current.origin + now;
        self.enter(async move { time::sleep_until(end).await });
    }

    /// Continues after the process was frozen: all timers that are due fire at once.
    pub(super) fn continue_at(&mut self, now: Duration, freeze: Freeze) {
        let origin = self.current.origin;
        let elapsed = self.runtime.block_on(async { origin.elapsed() });
        let frozen = now.saturating_sub(elapsed);
        match freeze {
            Freeze::Stopped => return self.enter(time::advance(frozen)),
            Freeze::Suspended => self.current.origin -= frozen,
            Freeze::Unnoticed => {
                self.current.origin -= frozen;
                self.current.lag += frozen;
            }
        }
        self.proceed();
    }

    /// True if a task of the process has not ended.
    pub(super) fn is_busy(&self) -> bool {
        self.runtime.metrics().num_alive_tasks() > 0
    }

    /// Ends the process with all its tasks.
    pub(super) fn crash(self) {
        CURRENT.set(Some(self.current));
        drop(self.runtime);
        CURRENT.set(None);
    }
}
