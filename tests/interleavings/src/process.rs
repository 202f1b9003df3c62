//! A process: a runtime of its own, whose time passes only when the search says so.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use lambda_tools::{Server, testing::LambdaFunction};
use serde_json::{Value, json};
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
    time,
};

use crate::network::{Connection, Network};

/// The time at which every execution starts: 5 October 2023, 12:00:00 UTC.
const START: Duration = Duration::from_hours(471_252);

/// The clock of a process, which has its own virtual time.
#[derive(Clone, Copy)]
pub(crate) struct WallClock {
    origin: time::Instant,
    /// The time by which the clock is ahead.
    lead: Duration,
}

impl WallClock {
    pub(crate) fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + START + self.origin.elapsed() + self.lead
    }
}

/// Returns a function that runs in a process.
pub(crate) fn function(server: Server, process: Connection) -> Arc<LambdaFunction> {
    let wall = move || process.wall();
    // The monotonic time of the process that runs at present.
    let instant = || time::Instant::now().into_std();
    Arc::new(LambdaFunction::with_clocks(server, wall, instant))
}

/// A process that has not crashed.
pub(crate) struct Process {
    runtime: Runtime,
    connection: Connection,
}

impl Process {
    pub(crate) fn new(connection: Connection, lead: Duration, now: Duration) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs nothing");
        let origin = runtime.block_on(async { time::Instant::now() });
        let origin = origin - now;
        let clock = WallClock { origin, lead };
        let number = connection.process;
        connection
            .network
            .with(|it| it.clocks.insert(number, clock));
        Self {
            runtime,
            connection,
        }
    }

    /// Runs a future in the process, and then everything that can run without a response or time.
    pub(crate) fn enter(&self, future: impl Future<Output = ()>) {
        /// A yielding task continues after 61 polls of others, or when no other one can run.
        const YIELDS: usize = 4;
        self.runtime.block_on(async {
            future.await;
            for _ in 0..YIELDS {
                yield_now().await;
            }
        });
    }

    /// Lets time pass, timer by timer.
    pub(crate) fn pass_until(&self, now: Duration) {
        let end = self.clock(|clock| clock.origin) + now;
        self.enter(async move { time::sleep_until(end).await });
    }

    /// Continues after the process was suspended: its monotonic clock has stood still.
    pub(crate) fn resume_at(&self, now: Duration) {
        let origin = self.clock(|clock| clock.origin);
        let elapsed = self.runtime.block_on(async { origin.elapsed() });
        self.clock(|clock| clock.origin -= now.saturating_sub(elapsed));
        self.enter(async {});
    }

    fn clock<T>(&self, change: impl FnOnce(&mut WallClock) -> T) -> T {
        let number = self.connection.process;
        let clock = |network: &mut Network| change(network.clocks.get_mut(&number).unwrap());
        self.connection.network.with(clock)
    }

    /// Returns true if a task of the process has not ended.
    pub(crate) fn is_busy(&self) -> bool {
        self.runtime.metrics().num_alive_tasks() > 0
    }
}

/// Sends a request as an event of an HTTP API.
pub(crate) async fn send(
    function: &LambdaFunction,
    method: &str,
    url: &str,
    headers: &Value,
    body: &str,
) -> Value {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let event = json!({
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {"http": {"method": method, "path": path}},
        "body": body,
        "isBase64Encoded": false,
    });
    function.invoke(&event.to_string()).await.unwrap()
}
