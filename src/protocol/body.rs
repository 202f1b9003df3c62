//! The bodies of responses that are streamed while their call runs.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
};

use axum::{
    Error,
    body::{Body, Bytes, HttpBody},
    response::Response,
};
use http_body_util::BodyExt;
use hyper::body::Frame;
use tokio::{select, task::unconstrained};

/// Returns a server-sent event. The JSON has no line feeds: it is compact, and strings escape them.
pub(super) fn event(json: &[u8]) -> Bytes {
    [b"event: message\ndata: ", json, b"\n\n"].concat().into()
}

/// A call that runs while it is polled, and completes with its response.
pub(super) type RunningCall = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Waits for the first early chunk of a call, and returns the body of a stream: the early chunks,
/// then the body of the call's response, as an event. If the call ends first, returns its whole
/// response as an error.
///
/// - *Status and headers* precede the first chunk, so the end of a stream has to say what they say
///   in a whole response.
/// - *Size*: an outcome is measured, also at the end of a stream, and becomes a failure if it is
///   too large. Other chunks are not: an event source that cannot stream measures their sum.
/// - *Time*: the call runs while its stream is read. The engine stops it at its deadline, and the
///   failure ends the stream.
/// - *Log, metrics and span* end with the call; its last chunks may still have to be read. A stream
///   that is dropped earlier ends its call, and is logged as abandoned.
/// - *Redaction*: failures are redacted before they are encoded. Nothing searches other chunks, so
///   text of a tool in an early chunk has to be redacted by its `Context`.
/// - *Errors*: chunks do not fail; a failure is a chunk.
pub(super) async fn streamed(mut chunks: Body, mut call: RunningCall) -> Result<Body, Response> {
    let first = select! {
        biased;
        Some(first) = chunks.frame() => first,
        response = &mut call => return Err(response),
    };
    Ok(Body::new(Chunks {
        first: Some(first),
        chunks,
        call: Some(call),
        last: None,
    }))
}

/// The early chunks of a call, then the body of its response.
struct Chunks {
    first: Option<Result<Frame<Bytes>, Error>>,
    /// The early chunks; after the last of them, the body of the response.
    chunks: Body,
    /// `None` once the call has ended.
    call: Option<RunningCall>,
    /// The body of the response, until it takes the place of the early chunks.
    last: Option<Body>,
}

impl HttpBody for Chunks {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        // Before the chunks: those that were sent before the call ended must not get lost.
        if let Some(call) = &mut self.call
            && let Poll::Ready(response) = call.as_mut().poll(context)
        {
            let body = response.into_body();
            self.last = Some(Body::new(
                body.map_frame(|frame| frame.map_data(|it| event(&it))),
            ));
            self.call = None;
        }
        let has_ended = self.last.is_some();
        let mut chunks = poll_fn(|context| Pin::new(&mut self.chunks).poll_frame(context));
        let chunk = if has_ended {
            // With its budget for a poll used up, tokio says of a channel with chunks that it is empty.
            pin!(unconstrained(chunks)).poll(context)
        } else {
            Pin::new(&mut chunks).poll(context)
        };
        if let Poll::Ready(Some(_)) = chunk {
            return chunk;
        }
        if self.call.is_some() {
            if chunk.is_ready() {
                // Not every body may be polled after its end.
                self.chunks = Body::empty();
            }
            return Poll::Pending;
        }
        let Some(last) = self.last.take() else {
            return chunk;
        };
        self.chunks = last;
        Pin::new(&mut self.chunks).poll_frame(context)
    }
}

#[cfg(test)]
mod tests;
