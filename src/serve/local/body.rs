//! Bodies have to arrive in time.
//!
//! A client that sends its body byte by byte would keep its connection for as long as it likes:
//! hyper limits the time for the head of a request only.

use std::{
    io,
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
    body::Body,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;

use crate::protocol::problem;

/// Lets requests through to `router` whose bodies arrive whole within `limit`.
pub(super) fn limit(router: Router, limit: Duration) -> Router {
    router.layer(middleware::from_fn_with_state(limit, timed))
}

async fn timed(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let is_late = Arc::new(AtomicBool::new(false));
    let request = request.map(|body| {
        Body::new(TimedBody {
            body,
            deadline: Box::pin(tokio::time::sleep(limit)),
            is_late: Arc::clone(&is_late),
        })
    });
    let response = next.run(request).await;
    // Whatever the router made of a part of the body, this is the reason.
    if is_late.load(Relaxed) {
        return problem::late(limit);
    }
    response
}

/// A body that fails at its deadline.
struct TimedBody {
    body: Body,
    deadline: Pin<Box<Sleep>>,
    is_late: Arc<AtomicBool>,
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
