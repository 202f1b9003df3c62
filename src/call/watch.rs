//! The watch for tools that block the thread that other calls share.
//!
//! Until such a tool returns, its thread does nothing else. If there is only one, as on Lambda, not
//! even the tool's time limit ends the call.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::tool::toolkit::ToolEntry;

/// The time between two looks at the tool that is running.
const TICK: Duration = Duration::from_millis(100);

/// The longest time for which a tool should keep its thread from other calls.
const LONG: Duration = Duration::from_millis(100);

/// The watch over running tools. A program's own server has none.
#[derive(Clone, Default)]
pub(crate) enum Watch {
    #[default]
    Off,
    /// Each time that a tool runs without waiting, for a server with concurrent calls.
    Polls,
    /// The end of the time limit, for a server with one thread.
    Limits(Arc<OnlyThread>),
}

/// The tool that is running on the only thread, and the end of its time limit.
#[derive(Default)]
pub(crate) struct OnlyThread(Mutex<Option<(ToolEntry, Instant)>>);

impl Watch {
    /// Runs a tool to its end.
    pub(super) async fn run<F: Future>(
        self,
        tool: ToolEntry,
        limit: Duration,
        run: F,
    ) -> F::Output {
        let mut run = pin!(run);
        let end = Instant::now() + limit;
        poll_fn(|context| match &self {
            Self::Off => run.as_mut().poll(context),
            Self::Polls => {
                let begun = Instant::now();
                let polled = run.as_mut().poll(context);
                let elapsed = begun.elapsed();
                if elapsed > LONG {
                    let ms = elapsed.as_millis();
                    tracing::warn!(tool = %tool.id, ms, "the tool blocked its thread; {ADVICE}");
                }
                polled
            }
            Self::Limits(thread) => {
                let _running = thread.enter(&tool, end);
                run.as_mut().poll(context)
            }
        })
        .await
    }
}

const ADVICE: &str = "if its function were not async, it would run on a thread of its own";

/// Logs that a tool blocks its thread although its time is over.
pub(super) fn report(tool: &ToolEntry) {
    tracing::error!(
        tool = %tool.id,
        "the tool blocks its thread past its time limit; {ADVICE}"
    );
}

impl OnlyThread {
    fn enter(&self, tool: &ToolEntry, end: Instant) -> impl Drop {
        *self.lock() = Some((tool.clone(), end));
        Leave(self)
    }

    /// Logs each tool that blocks the thread past its limit, once, until the process ends.
    pub(crate) fn watch(&self) -> ! {
        loop {
            thread::sleep(TICK);
            let late = self.lock().take_if(|(_, end)| *end < Instant::now());
            if let Some((tool, _)) = late {
                report(&tool);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(ToolEntry, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves the thread when this is dropped, also if the tool panics.
struct Leave<'a>(&'a OnlyThread);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}
