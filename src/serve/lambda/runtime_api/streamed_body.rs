//! The body of a streamed response: the prelude, the parts, and an error in trailers.
//!
//! `lambda_runtime` would write an error into the body, as text, and end the body of a response that
//! panics as if it were complete.

use std::{
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::{Body, HttpBody};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONTENT_TYPE, TRAILER},
};
use hyper::body::Frame;
use serde_json::json;

use super::ERROR_TYPE;
use crate::event::StreamedResponse;

const RESPONSE_MODE: HeaderName = HeaderName::from_static("lambda-runtime-function-response-mode");
const ERROR_BODY: HeaderName = HeaderName::from_static("lambda-runtime-function-error-body");

/// Sets the headers of a streamed response, which announce its trailers.
pub(super) fn set_headers(headers: &mut HeaderMap) {
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(RESPONSE_MODE, "streaming");
    set(
        CONTENT_TYPE,
        "application/vnd.awslambda.http-integration-response",
    );
    set(
        TRAILER,
        "lambda-runtime-function-error-type, lambda-runtime-function-error-body",
    );
}

/// The body of a streamed response.
pub(in crate::serve) struct StreamedBody {
    /// The prelude, until it is sent.
    prelude: Option<Bytes>,
    /// `None` after an error.
    body: Option<Body>,
}

impl StreamedBody {
    pub(super) fn new(response: StreamedResponse) -> Self {
        Self {
            prelude: Some(response.prelude()),
            body: Some(response.body),
        }
    }
}

impl HttpBody for StreamedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(prelude) = self.prelude.take() {
            return Poll::Ready(Some(Ok(Frame::data(prelude))));
        }
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let body = Pin::new(body);
        let polled = catch_unwind(AssertUnwindSafe(|| body.poll_frame(context)));
        let (kind, message) = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(None)) => return Poll::Ready(None),
            Ok(Poll::Ready(Some(Ok(frame)))) => return Poll::Ready(Some(Ok(frame))),
            Ok(Poll::Ready(Some(Err(error)))) => ("Internal", error.to_string()),
            Err(_) => ("Panic", "The function panicked; the log says where.".into()),
        };
        self.body = None;
        Poll::Ready(Some(Ok(Frame::trailers(trailers(kind, &message)))))
    }
}

fn trailers(kind: &'static str, message: &str) -> HeaderMap {
    let error = json!({"errorType": kind, "errorMessage": message});
    let error = BASE64_STANDARD.encode(error.to_string());
    let mut trailers = HeaderMap::new();
    trailers.insert(ERROR_TYPE, HeaderValue::from_static(kind));
    let error = HeaderValue::try_from(error).expect("base64 is ASCII");
    trailers.insert(ERROR_BODY, error);
    trailers
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, io::ErrorKind};

    use futures_util::{StreamExt, stream};
    use http::{Request, header::HOST};
    use hyper::client::conn::http1;
    use hyper_util::rt::TokioIo;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    type Chunk = Result<&'static str, &'static str>;

    fn streamed(chunks: impl stream::Stream<Item = Chunk> + Send + 'static) -> StreamedBody {
        StreamedBody {
            prelude: Some(Bytes::from_static(b"{}\0\0\0\0\0\0\0\0")),
            body: Some(Body::from_stream(chunks)),
        }
    }

    /// Sends a body as `RuntimeApi` does; returns what follows the headers on the wire.
    async fn on_the_wire(body: StreamedBody) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sent = async {
            let stream = TcpStream::connect(address).await.unwrap();
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
            let mut request = Request::post("/response").header(HOST, "runtime");
            set_headers(request.headers_mut().unwrap());
            let request = sender.send_request(request.body(body).unwrap());
            let _ = tokio::join!(connection, request);
        };
        let received = async {
            let (stream, _) = listener.accept().await.unwrap();
            let mut received = Vec::new();
            while !received.ends_with(b"\r\n\r\n") || !received.windows(3).any(|it| it == b"\n0\r")
            {
                stream.readable().await.unwrap();
                match stream.try_read_buf(&mut received) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
            received
        };
        let (received, ()) = tokio::join!(received, sent);
        let text = String::from_utf8(received).unwrap();
        let (head, rest) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        rest.to_owned()
    }

    /// The prelude and two parts on the wire.
    const PARTS: &str = "A\r\n{}\0\0\0\0\0\0\0\0\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n";

    fn parts() -> impl stream::Stream<Item = Chunk> + Send {
        stream::iter([Ok("one"), Ok("two")])
    }

    /// Checks that a body with these trailers ends with them, and with nothing else.
    fn check(sent: &str, kind: &str, message: &str) {
        let trailers = sent
            .strip_prefix(PARTS)
            .unwrap_or_else(|| panic!("{sent:?}"));
        let trailers = trailers.strip_suffix("\r\n\r\n").unwrap();
        let mut lines: Vec<_> = trailers.split("\r\n").collect();
        lines.sort_unstable();
        let [body, error_type] = lines[..] else {
            panic!("{lines:?}");
        };
        let expected = format!("lambda-runtime-function-error-type: {kind}");
        assert_eq!(error_type, expected);
        let body = body.strip_prefix("lambda-runtime-function-error-body: ");
        let body = BASE64_STANDARD.decode(body.unwrap()).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let expected = json!({"errorType": kind, "errorMessage": message});
        assert_eq!(body, expected);
    }

    #[tokio::test]
    async fn each_part_is_a_chunk_after_the_prelude() {
        let sent = on_the_wire(streamed(parts())).await;
        assert_eq!(sent, format!("{PARTS}\r\n"));
        let empty = on_the_wire(streamed(stream::empty())).await;
        assert_eq!(empty, "A\r\n{}\0\0\0\0\0\0\0\0\r\n0\r\n\r\n");
    }

    #[tokio::test]
    async fn an_error_is_in_the_trailers_and_nothing_follows_it() {
        let failing = parts().chain(stream::iter([Err("It broke"), Ok("more")]));
        check(
            &on_the_wire(streamed(failing)).await,
            "Internal",
            "It broke",
        );
    }

    #[tokio::test]
    async fn a_panic_is_in_the_trailers() {
        let panics = stream::poll_fn(|_| -> Poll<Option<Chunk>> { panic!("on request") });
        let message = "The function panicked; the log says where.";
        check(
            &on_the_wire(streamed(parts().chain(panics))).await,
            "Panic",
            message,
        );
    }

    #[tokio::test]
    async fn a_body_without_parts_may_panic_too() {
        let panics = stream::poll_fn(|_| -> Poll<Option<Result<Bytes, Infallible>>> {
            panic!("on request")
        });
        let mut body = StreamedBody {
            prelude: None,
            body: Some(Body::from_stream(panics)),
        };
        let mut next =
            async || std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let trailers = next().await.unwrap().unwrap().into_trailers().unwrap();
        assert_eq!(trailers[ERROR_TYPE], "Panic");
        assert!(next().await.is_none());
        assert!(next().await.is_none());
    }
}
