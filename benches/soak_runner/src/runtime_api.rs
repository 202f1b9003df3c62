//! Lambda's runtime API on a loopback address: it hands out one event at a time, and measures.
//!
//! A measurement of the process waits for the end of the event in progress, so that it does not
//! count what a call needs for itself.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard, mpsc, oneshot},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// The time that an invocation has: the timeout of the template's functions.
const INVOCATION: Duration = Duration::from_secs(23);
/// The longest wait for the function's request for its next event.
const IDLE_LIMIT: Duration = Duration::from_secs(5);
/// The time between two looks at a function that is not asleep yet.
const SETTLING: Duration = Duration::from_millis(2);
/// The number of these looks. A tool's late task may keep the function awake.
const MAX_LOOKS: u32 = 50;

/// The function's response to an event.
#[derive(Debug)]
pub(crate) struct Reply {
    /// True if the function reported an error instead of a response.
    pub(crate) is_error: bool,
    pub(crate) body: Bytes,
    /// The time from the event's departure to the arrival of the response.
    pub(crate) latency: Duration,
    /// The number of requests that the store has failed in that time.
    pub(crate) store_failures: u64,
}

struct Job {
    event: Vec<u8>,
    reply: oneshot::Sender<Reply>,
}

/// The event in progress.
struct Current {
    id: String,
    sent: Instant,
    store_failures: u64,
    reply: oneshot::Sender<Reply>,
    _turn: OwnedMutexGuard<()>,
}

struct Shared {
    jobs: AsyncMutex<mpsc::UnboundedReceiver<Job>>,
    /// Locked while an event is in progress.
    turn: Arc<AsyncMutex<()>>,
    current: Mutex<Option<Current>>,
    /// True while the function waits for an event.
    is_idle: AtomicBool,
    sent: AtomicU64,
    /// Responses that do not belong to the event in progress.
    misplaced: AtomicU64,
    store_failures: Arc<AtomicU64>,
}

/// The runtime API of one function. It stops serving when it is dropped.
pub(crate) struct RuntimeApi {
    /// The host and port, for the function's environment.
    pub(crate) address: String,
    shared: Arc<Shared>,
    jobs: mpsc::UnboundedSender<Job>,
    server: JoinHandle<()>,
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl RuntimeApi {
    /// `store_failures` counts the requests that the store has failed.
    pub(crate) async fn start(store_failures: Arc<AtomicU64>) -> io::Result<Self> {
        let (jobs, receiver) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            jobs: AsyncMutex::new(receiver),
            turn: Arc::default(),
            current: Mutex::default(),
            is_idle: AtomicBool::default(),
            sent: AtomicU64::default(),
            misplaced: AtomicU64::default(),
            store_failures,
        });
        let base = "/2018-06-01/runtime/invocation";
        let router = Router::new()
            .route(&format!("{base}/next"), get(next))
            .route(&format!("{base}/{{id}}/{{kind}}"), post(respond))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            shared,
            jobs,
            server,
        })
    }

    /// Queues an event; `None` if the function does not respond within `limit`.
    pub(crate) async fn invoke(&self, event: Vec<u8>, limit: Duration) -> Option<Reply> {
        let (reply, response) = oneshot::channel();
        self.jobs.send(Job { event, reply }).ok()?;
        timeout(limit, response).await.ok()?.ok()
    }

    /// Lets `measure` look at the function between two events, once `sleeps` says that it has nothing
    /// left to do; `None` if it does not ask for the next event.
    pub(crate) async fn while_idle<T>(
        &self,
        sleeps: impl Fn() -> bool,
        measure: impl FnOnce() -> T,
    ) -> Option<T> {
        let _turn = timeout(IDLE_LIMIT, self.shared.turn.lock()).await.ok()?;
        let is_idle = async {
            while !self.shared.is_idle.load(Acquire) {
                sleep(Duration::from_micros(200)).await;
            }
        };
        timeout(IDLE_LIMIT, is_idle).await.ok()?;
        // On a busy machine, the function may still be freeing what the last event needed.
        for _ in 0..MAX_LOOKS {
            sleep(SETTLING).await;
            if sleeps() {
                break;
            }
        }
        Some(measure())
    }

    /// The number of responses that do not belong to the event in progress.
    pub(crate) fn misplaced(&self) -> u64 {
        self.shared.misplaced.load(Relaxed)
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    shared.is_idle.store(true, Release);
    let Some(job) = shared.jobs.lock().await.recv().await else {
        return std::future::pending().await;
    };
    let turn = Arc::clone(&shared.turn).lock_owned().await;
    shared.is_idle.store(false, Release);
    let number = shared.sent.fetch_add(1, Relaxed);
    let id = format!("8476a536-e9f4-11e8-9739-{number:012}");
    let deadline = SystemTime::now() + INVOCATION;
    let deadline = deadline.duration_since(UNIX_EPOCH).unwrap_or_default();
    let headers = [
        ("lambda-runtime-aws-request-id", id.clone()),
        (
            "lambda-runtime-deadline-ms",
            deadline.as_millis().to_string(),
        ),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:123456789012:function:soak".to_owned(),
        ),
        ("content-type", "application/json".to_owned()),
    ];
    let current = Current {
        id,
        sent: Instant::now(),
        store_failures: shared.store_failures.load(Relaxed),
        reply: job.reply,
        _turn: turn,
    };
    *lock(&shared.current) = Some(current);
    (headers, job.event).into_response()
}

async fn respond(
    State(shared): State<Arc<Shared>>,
    Path((id, kind)): Path<(String, String)>,
    body: Bytes,
) -> StatusCode {
    let current = lock(&shared.current).take_if(|current| current.id == id);
    let Some(current) = current else {
        shared.misplaced.fetch_add(1, Relaxed);
        return StatusCode::BAD_REQUEST;
    };
    // The client may have stopped waiting.
    let _ = current.reply.send(Reply {
        is_error: kind == "error",
        body,
        latency: current.sent.elapsed(),
        store_failures: shared.store_failures.load(Relaxed) - current.store_failures,
    });
    StatusCode::ACCEPTED
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds this")
}
