//! Notices that a tool blocks the only thread, and moves the tasks that wait for it to another.
//!
//! [`run`](crate::run) uses one thread, because waking a second one takes a fifth of the time of a
//! short call. If a tool blocks that thread, no timer fires on it and no response leaves it. The
//! watchdog runs on a thread of its own, and costs a call one atomic store.

mod movable;
#[cfg(any(feature = "aws", feature = "oauth", feature = "oidc"))]
mod per_thread;

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{AcqRel, Acquire, Release},
        },
    },
    thread::Thread,
    time::{Duration, Instant},
};

use tokio::{
    select,
    sync::{Notify, oneshot},
    time::timeout,
};

pub(crate) use movable::{Ended, Movable};
#[cfg(any(feature = "aws", feature = "oauth", feature = "oidc"))]
pub(crate) use per_thread::PerThread;

/// The time between two looks at the running tool, if its time limit is not near.
const TICK: Duration = Duration::from_millis(100);

/// The time after its limit that a tool has to return before its thread counts as blocked: longer
/// than an aborted tool is given to stop, also on a small share of a processor.
const GRACE: Duration = Duration::from_millis(125);

/// No tool runs.
const IDLE: u64 = 0;
/// A tool runs, within its time limit.
const RUNNING: u64 = 1;
/// The time limit has passed.
const EXPIRED: u64 = 2;
/// The tool blocks its thread.
const BLOCKED: u64 = 3;
/// How often a thread has been replaced because a tool blocked it.
static REPLACEMENTS: AtomicUsize = AtomicUsize::new(0);

/// The bits of the state that hold the stage.
const STAGE: u64 = 3;

fn state_of(end: Duration, stage: u64) -> u64 {
    let end = u64::try_from(end.as_millis()).unwrap_or(u64::MAX);
    (end.min(u64::MAX >> 2) << 2) | stage
}

/// Watches one tool at a time.
pub(crate) struct Watchdog {
    start: Instant,
    /// The stage, and above it the end of the stage, in milliseconds after the start.
    state: AtomicU64,
    changed: Notify,
    /// The tasks that may have to be moved.
    tasks: Mutex<Vec<Weak<Movable<()>>>>,
    /// The thread that calls [`Watchdog::check`].
    thread: OnceLock<Thread>,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            state: AtomicU64::new(IDLE),
            changed: Notify::new(),
            tasks: Mutex::new(Vec::new()),
            thread: OnceLock::new(),
        }
    }

    /// Names the thread that calls [`Watchdog::check`], so that a short time limit can wake it.
    pub(crate) fn set_thread(&self, thread: Thread) {
        let _ = self.thread.set(thread);
    }

    /// Lets the tool know that its time limit has passed. Returns the time until the next check;
    /// `None` if the tool blocks its thread.
    pub(crate) fn check(&self) -> Option<Duration> {
        let state = self.state.load(Acquire);
        if state == IDLE || state & STAGE == BLOCKED {
            return Some(TICK);
        }
        let end = Duration::from_millis(state >> 2);
        let now = self.start.elapsed();
        let left = end.saturating_sub(now);
        if !left.is_zero() {
            return Some(left.min(TICK));
        }
        // The grace begins when this check notices the end, which may be late: the platform stops
        // or slows down all threads at once.
        let (next, pause) = if state & STAGE == RUNNING {
            (state_of(now + GRACE, EXPIRED), Some(GRACE))
        } else {
            (state_of(end, BLOCKED), None)
        };
        // If this fails, the tool has just returned.
        let changed = self.state.compare_exchange(state, next, AcqRel, Acquire);
        self.changed.notify_waiters();
        changed.map_or(Some(TICK), |_| pause)
    }

    /// True until the tool returns that blocked its thread at the last check.
    pub(crate) fn is_blocked(&self) -> bool {
        self.state.load(Acquire) & STAGE == BLOCKED
    }

    /// Replaces the blocked thread: returns the tasks that wait for a tool, taken from their
    /// runtime.
    pub(crate) fn replace_thread(&self) -> Vec<Arc<Movable<()>>> {
        REPLACEMENTS.fetch_add(1, AcqRel);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = std::mem::take(&mut *tasks);
        let tasks = tasks.iter().filter_map(Weak::upgrade);
        tasks.filter_map(|task| task.moved()).collect()
    }

    fn register(&self, task: &Arc<Movable<()>>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| task.strong_count() > 0);
        tasks.push(Arc::downgrade(task));
    }

    /// Watches a tool, unless another one is being watched.
    fn watch(self: &Arc<Self>, limit: Duration) -> Option<Watch> {
        let state = state_of(self.start.elapsed() + limit, RUNNING);
        let begun = self.state.compare_exchange(IDLE, state, AcqRel, Acquire);
        begun.ok()?;
        if limit < 2 * TICK
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
        Some(Watch(Arc::clone(self)))
    }
}

/// A tool that is being watched, until this is dropped.
pub(crate) struct Watch(Arc<Watchdog>);

impl Watch {
    async fn reaches(&self, stage: u64) {
        loop {
            // Created before the state is read, so that no change is missed.
            let changed = self.0.changed.notified();
            if self.0.state.load(Acquire) & STAGE >= stage {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.state.store(IDLE, Release);
    }
}

/// Runs the tasks that wait for tools.
#[derive(Clone, Default)]
pub(crate) struct Tasks(Option<Arc<Watchdog>>);

impl Tasks {
    /// Tasks of a runtime with one thread.
    pub(crate) fn watched_by(watchdog: &Arc<Watchdog>) -> Self {
        Self(Some(Arc::clone(watchdog)))
    }

    /// Runs a task to its end even if the caller stops waiting. `None` if the task panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let Some(watchdog) = &self.0 else {
            return tokio::spawn(task).await.ok();
        };
        let (sender, receiver) = oneshot::channel();
        let task = Arc::new(Movable::new(async move {
            let _ = sender.send(task.await);
        }));
        watchdog.register(&task);
        tokio::spawn(async move { task.wait().await });
        receiver.await.ok()
    }

    /// Begins a tool's time limit.
    pub(crate) fn limit(&self, limit: Duration) -> TimeLimit {
        let watchdog = self.0.as_ref();
        match watchdog.and_then(|watchdog| watchdog.watch(limit)) {
            Some(watch) => TimeLimit::Watched(watch),
            None => TimeLimit::Timer(limit),
        }
    }
}

/// A tool's time limit.
pub(crate) enum TimeLimit {
    /// On several threads: one of them is free to notice the end.
    Timer(Duration),
    Watched(Watch),
}

impl TimeLimit {
    /// The task's output, unless the limit passes first.
    pub(crate) async fn wait_for<F: Future + Unpin>(&self, task: F) -> Option<F::Output> {
        match self {
            Self::Timer(limit) => timeout(*limit, task).await.ok(),
            Self::Watched(watch) => select! {
                biased;
                output = task => Some(output),
                () = watch.reaches(EXPIRED) => None,
            },
        }
    }

    /// The output of a task that was aborted, if it ends within `limit`.
    pub(crate) async fn wait_for_aborted<F: Future + Unpin>(
        &self,
        task: F,
        limit: Duration,
    ) -> Option<F::Output> {
        match self {
            Self::Timer(_) => timeout(limit, task).await.ok(),
            Self::Watched(watch) => select! {
                biased;
                output = timeout(limit, task) => output.ok(),
                () = watch.reaches(BLOCKED) => None,
            },
        }
    }
}

#[cfg(test)]
mod tests;
