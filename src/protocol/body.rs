//! The bodies of responses: whole, or streamed while the call runs.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
};

use axum::{
    Error,
    body::{Body, Bytes, HttpBody},
    response::Response,
};
use futures_util::stream;
use http::{HeaderValue, header::CONTENT_TYPE};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::{select, task::unconstrained};

/// The body of a response, as a protocol encodes it.
///
/// The response to a call is a stream if the protocol has [early
/// chunks](super::codec::Codec::early_chunks) for it; the outcome or the refusal ends the stream.
///
/// - *Status and headers* precede the first chunk, so the end of a stream has to say what they say
///   in a whole response. A call that ends before the first chunk gets a whole response.
/// - *Size*: an outcome is measured, also at the end of a stream, and becomes a failure if it is
///   too large. Other chunks are not: an event source that cannot stream measures their sum.
/// - *Time*: the call runs while its stream is read. The engine stops it at its deadline, and the
///   failure ends the stream.
/// - *Log, metrics and span* end with the call; its last chunks may still have to be read. A stream
///   that is dropped earlier ends its call, and is logged as abandoned.
/// - *Redaction*: failures are redacted before they are encoded. Nothing searches other chunks, so
///   text of a tool in an early chunk has to be redacted by its `Context`.
/// - *Errors*: chunks do not fail; a failure is a chunk.
pub(super) enum ResponseBody {
    Whole(Vec<u8>),
    /// Server-sent events, each a chunk: some clients look for events in each chunk by itself.
    Events(Vec<Bytes>),
    /// Server-sent events while the call runs.
    Stream(Body),
}

/// Returns a server-sent event. The JSON has no line feeds: it is compact, and strings escape them.
pub(super) fn event(json: &[u8]) -> Bytes {
    [b"event: message\ndata: ", json, b"\n\n"].concat().into()
}

/// Returns the end of a stream: the body of a response, as an event if it is not one already.
fn framed(response: Response) -> Body {
    let is_json = |it: &HeaderValue| it == "application/json";
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(is_json);
    let body = response.into_body();
    if !is_json {
        return body;
    }
    Body::new(body.map_frame(|frame| frame.map_data(|it| event(&it))))
}

/// Returns a body with one chunk for each event.
pub(super) fn body_of(events: Vec<Bytes>) -> Body {
    let frames = events
        .into_iter()
        .map(|event| Ok::<_, Infallible>(Frame::data(event)));
    Body::new(StreamBody::new(stream::iter(frames)))
}

impl From<Vec<u8>> for ResponseBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Whole(bytes)
    }
}

/// A call that runs while it is polled, and completes with its response.
pub(super) type RunningCall = Pin<Box<dyn Future<Output = Response> + Send>>;

impl ResponseBody {
    /// Returns the parts of an outcome's body.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let (whole, events) = match self {
            Self::Whole(bytes) => (Some(&**bytes), &[][..]),
            Self::Events(events) => (None, &**events),
            Self::Stream(_) => (None, &[][..]),
        };
        whole.into_iter().chain(events.iter().map(|it| &**it))
    }

    /// Waits for the first early chunk of a call. If the call ends first, returns its whole
    /// response as an error.
    pub(super) async fn of(mut chunks: Body, mut call: RunningCall) -> Result<Self, Response> {
        let first = select! {
            biased;
            Some(first) = chunks.frame() => first,
            response = &mut call => return Err(response),
        };
        Ok(Self::Stream(Body::new(Chunks {
            first: Some(first),
            chunks,
            call: Some(call),
            last: None,
        })))
    }
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
            self.last = Some(framed(response));
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
