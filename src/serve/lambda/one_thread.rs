//! A function whose events, responses and tools share one thread.
//!
//! The platform sends one event at a time, so a second thread would only be woken and put to sleep
//! again. If a tool blocks the thread, a new one takes over: it answers the event, and handles the
//! following ones. The old one continues when the tool returns, and ends with the last task that was
//! begun on it.

use std::{
    env,
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread::{self, Thread},
    time::Duration,
};

use lambda_http::lambda_runtime::{Context, Diagnostic};
use tokio::{
    runtime::{Builder, RuntimeMetrics},
    select,
    sync::{oneshot, watch},
    time::sleep,
};

use super::{
    function::Function,
    runtime_api::{Endpoint, Event, InvocationId, RuntimeApi},
};
use crate::{
    Error, Server,
    event::EncodedResponse,
    watchdog::{Ended, Movable, Tasks, Watchdog},
};

/// True if the platform sends one event at a time. `SnapStart` and concurrent invocations
/// need `lambda_runtime`.
pub(in crate::serve) fn is_possible() -> bool {
    let is_snapshot =
        env::var("AWS_LAMBDA_INITIALIZATION_TYPE").is_ok_and(|kind| kind == "snap-start");
    let is_concurrent =
        cfg!(feature = "managed-instances") || env::var_os("AWS_LAMBDA_MAX_CONCURRENCY").is_some();
    !is_snapshot && !is_concurrent
}

/// The time between two looks at the tasks of a replaced thread.
const TASKS_CHECK: Duration = Duration::from_millis(500);

/// The response to an event, as JSON.
type Answer = Result<EncodedResponse, Diagnostic>;

/// The state that the threads of a function share.
struct Shared {
    watchdog: Arc<Watchdog>,
    endpoint: Endpoint,
    function: OnceLock<Arc<Function>>,
    /// The invocation in progress.
    invocation: Mutex<Option<(InvocationId, Arc<Movable<Answer>>)>>,
    /// The number of the thread that handles events.
    current: watch::Sender<usize>,
    /// The result of the function, once a thread has ended it.
    end: Mutex<Option<Result<(), Error>>>,
    /// The thread that waits for the end.
    main: Thread,
}

/// Handles events from the runtime API until the platform ends the process.
pub(in crate::serve) fn run(server: Server) -> Result<(), Error> {
    let shared = Arc::new(Shared {
        watchdog: Arc::new(Watchdog::new()),
        endpoint: Endpoint::from_environment()?,
        function: OnceLock::new(),
        invocation: Mutex::default(),
        current: watch::Sender::new(0),
        end: Mutex::default(),
        main: thread::current(),
    });
    shared.watchdog.set_thread(thread::current());
    let first = Arc::clone(&shared);
    let toolkit = Arc::clone(server.toolkit());
    let (is_prepared, prepared) = oneshot::channel();
    shared.start_thread(0, async move {
        let tasks = Tasks::watched_by(&first.watchdog);
        let function = Arc::new(Function::start(server, tasks).await?);
        let function = first.function.get_or_init(|| function);
        // An error would mean that the other thread has ended.
        let _ = prepared.await;
        first.handle_events(function, first.api()).await
    })?;
    // Meanwhile: nothing can block the thread yet.
    toolkit.prepare();
    let _ = is_prepared.send(());
    loop {
        if let Some(result) = lock(&shared.end).take() {
            return result;
        }
        match shared.watchdog.check() {
            Some(pause) => thread::park_timeout(pause),
            None => shared.take_over()?,
        }
    }
}

impl Shared {
    /// Runs `work` on a new thread, until another thread replaces it.
    fn start_thread(
        self: &Arc<Self>,
        number: usize,
        work: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) -> Result<(), Error> {
        let shared = Arc::clone(self);
        let body = move || {
            let run = || shared.run_until_replaced(number, work);
            let result = catch_unwind(AssertUnwindSafe(run));
            let panicked = |_| Some(Err("the thread that handles events panicked".into()));
            if let Some(result) = result.unwrap_or_else(panicked) {
                *lock(&shared.end) = Some(result);
                shared.main.unpark();
            }
        };
        thread::Builder::new()
            .name(format!("events-{number}"))
            .spawn(body)?;
        Ok(())
    }

    /// The result of `work`; `None` if another thread has replaced this one.
    fn run_until_replaced(
        &self,
        number: usize,
        work: impl Future<Output = Result<(), Error>>,
    ) -> Option<Result<(), Error>> {
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return Some(Err(error.into())),
        };
        let mut current = self.current.subscribe();
        let result = runtime.block_on(async {
            select! {
                result = work => Some(result),
                _ = current.wait_for(|current| *current != number) => None,
            }
        });
        if result.is_none() {
            runtime.block_on(finish_tasks(number, &runtime.metrics()));
        }
        runtime.shutdown_background();
        result
    }

    fn api(&self) -> RuntimeApi {
        RuntimeApi::new(self.endpoint.clone())
    }

    async fn handle_events(
        &self,
        function: &Arc<Function>,
        mut api: RuntimeApi,
    ) -> Result<(), Error> {
        loop {
            let Event { body, context, id } = api.next().await?;
            tracing::trace!(bytes = body.len(), "received an event");
            let answer = match (String::from_utf8(body.into()), context) {
                (Ok(event), Ok(context)) => self.handle(function, event, context, &id).await,
                (_, Err(error)) => Err(error),
                (Err(_), _) => Err(Diagnostic {
                    error_type: "UnsupportedEvent".into(),
                    error_message: "The event is not UTF-8.".into(),
                }),
            };
            api.respond(&id, answer).await?;
        }
    }

    async fn handle(
        &self,
        function: &Arc<Function>,
        event: String,
        context: Context,
        id: &InvocationId,
    ) -> Answer {
        let response = function.invoke(event, context);
        let invocation = Arc::new(Movable::new(async {
            response.await?.encode().map_err(|error| Diagnostic {
                error_type: "Internal".into(),
                error_message: format!("The response cannot be encoded: {error}"),
            })
        }));
        *lock(&self.invocation) = Some((id.clone(), Arc::clone(&invocation)));
        let answer = answer_of(&invocation).await;
        *lock(&self.invocation) = None;
        answer
    }

    /// Replaces the thread that a tool blocks.
    fn take_over(self: &Arc<Self>) -> Result<(), Error> {
        let moved = {
            let mut invocation = lock(&self.invocation);
            // If the thread has continued since the check, the invocation may be the next one.
            let invocation = invocation.take_if(|_| self.watchdog.is_blocked());
            invocation.and_then(|(id, invocation)| Some((id, invocation.moved()?)))
        };
        let (Some((id, invocation)), Some(function)) = (moved, self.function.get().cloned()) else {
            // The thread has just continued.
            return Ok(());
        };
        tracing::error!(
            "a tool blocks its thread past its time limit; a new thread handles the next events"
        );
        let tasks = self.watchdog.replace_thread();
        let number = *self.current.borrow() + 1;
        self.current.send_replace(number);
        let shared = Arc::clone(self);
        self.start_thread(number, async move {
            for task in tasks {
                tokio::spawn(async move { task.wait().await });
            }
            let answer = answer_of(&invocation).await;
            let mut api = shared.api();
            api.respond(&id, answer).await?;
            shared.handle_events(&function, api).await
        })
    }
}

/// Runs the tasks that tools have left on a replaced thread.
async fn finish_tasks(number: usize, metrics: &RuntimeMetrics) {
    if number == 0 {
        // Connections of clients and the work at shutdown belong to the first thread.
        pending::<()>().await;
    }
    while metrics.num_alive_tasks() > 0 {
        sleep(TASKS_CHECK).await;
    }
}

/// The answer of an invocation; never, if another thread has taken it over.
async fn answer_of(invocation: &Movable<Answer>) -> Answer {
    match invocation.wait().await {
        Ok(answer) => answer,
        Err(Ended::Moved) => pending().await,
        Err(Ended::Panicked) => Err(Diagnostic {
            error_type: "Panic".into(),
            error_message: "The function panicked; the log says where.".into(),
        }),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
