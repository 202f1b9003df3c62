//! A time limit on request bodies, and the end of bodies that nobody reads.
//!
//! Without the limit, a client that sends its body byte by byte could keep its connection open
//! forever: hyper limits only the time for the head of a request. If a response does not need the
//! body, as when credentials are missing, hyper closes the connection unless all of the body has
//! arrived; clients that have just read the response would send the next request in vain.

use std::{
    io, mem,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::{
    sync::oneshot,
    time::{Sleep, timeout},
};

use crate::protocol::problem;

/// The length up to which the rest of a body is read although nobody needs it, and the time for it.
const MOST_DRAINED: usize = 64 * 1024;
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Rejects requests to `router` whose body does not fully arrive within `limit`.
pub(super) fn limit(router: Router, limit: Duration) -> Router {
    router.layer(middleware::from_fn_with_state(limit, run_limited))
}

async fn run_limited(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let is_late = Arc::new(AtomicBool::new(false));
    let (unread, mut unread_body) = oneshot::channel();
    let request = request.map(|body| {
        Body::new(TimedBody {
            body,
            deadline: Box::pin(tokio::time::sleep(limit)),
            is_late: Arc::clone(&is_late),
            unread: Some(unread),
        })
    });
    let response = next.run(request).await;
    // Replaces whatever the router responded to the partial body.
    if is_late.load(Relaxed) {
        return problem::late(limit);
    }
    if let Ok(body) = unread_body.try_recv() {
        // A body that is too long or too slow ends with its connection.
        let _ = timeout(DRAIN_LIMIT, to_bytes(body, MOST_DRAINED)).await;
    }
    response
}

/// A body that fails at its deadline.
struct TimedBody {
    body: Body,
    deadline: Pin<Box<Sleep>>,
    is_late: Arc<AtomicBool>,
    /// Receives the body when it is dropped before its end.
    unread: Option<oneshot::Sender<Body>>,
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        if !self.body.is_end_stream()
            && let Some(unread) = self.unread.take()
        {
            let _ = unread.send(mem::take(&mut self.body));
        }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.deadline.as_mut().poll(cx).is_pending() {
            return Pin::new(&mut this.body).poll_frame(cx);
        }
        this.is_late.store(true, Relaxed);
        let error = io::Error::new(io::ErrorKind::TimedOut, "the body took too long");
        Poll::Ready(Some(Err(axum::Error::new(error))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
