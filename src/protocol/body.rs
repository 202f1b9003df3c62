//! The bodies of responses that are streamed while their call runs.

use std::{future::Future, pin::Pin};

use axum::{
    Error,
    body::{Body, Bytes},
    response::Response,
};
use futures_util::{FutureExt, StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::{select, task::unconstrained};

/// Returns a server-sent event. The JSON has no line feeds: it is compact, and strings escape them.
pub(super) fn event(json: &[u8]) -> Bytes {
    [b"event: message\ndata: ", json, b"\n\n"].concat().into()
}

/// A call that runs while it is polled, and completes with its response.
pub(super) type RunningCall = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Waits for the first early chunk of a call, and returns the reply whose body is a stream: the early
/// chunks, then the body of the call's response, as an event. If the call ends first, returns its whole
/// response.
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
pub(super) async fn streamed(
    mut chunks: Body,
    mut call: RunningCall,
    reply: fn(Body) -> Response,
) -> Response {
    let first = select! {
        biased;
        Some(first) = chunks.frame() => first,
        response = &mut call => return response,
    };
    let rest = stream::unfold(Part::Running(chunks, call), Part::next);
    let frames = stream::iter([first]).chain(rest).fuse();
    reply(Body::new(StreamBody::new(frames)))
}

/// The rest of a stream.
enum Part {
    /// The early chunks of a call that runs.
    Running(Body, RunningCall),
    /// Those that were sent before the call ended, and the body of its response.
    Ended(Body, Body),
    /// The body of the response.
    Last(Body),
}

impl Part {
    async fn next(mut self) -> Option<(Result<Frame<Bytes>, Error>, Self)> {
        loop {
            self = match self {
                Self::Running(mut chunks, mut call) => select! {
                    biased;
                    response = &mut call => Self::Ended(chunks, response.into_body()),
                    chunk = chunks.frame() => match chunk {
                        Some(chunk) => return Some((chunk, Self::Running(chunks, call))),
                        // Not every body may be polled after its end.
                        None => Self::Last(call.await.into_body()),
                    },
                },
                Self::Ended(mut chunks, last) => {
                    // With its budget for a poll used up, tokio says of a channel with chunks that it
                    // is empty.
                    match unconstrained(chunks.frame()).now_or_never().flatten() {
                        Some(chunk) => return Some((chunk, Self::Ended(chunks, last))),
                        None => Self::Last(last),
                    }
                }
                Self::Last(mut last) => {
                    let chunk = last.frame().await?;
                    let chunk = chunk.map(|it| it.map_data(|it| event(&it)));
                    return Some((chunk, Self::Last(last)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
