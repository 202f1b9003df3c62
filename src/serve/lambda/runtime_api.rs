//! A client of Lambda's runtime API: the next event, and the response to it.
//!
//! `lambda_runtime` has one too, which an event with an invalid client context ends together with
//! the process. This client reports such an event, and does not copy events.
//!
//! AWS Lambda Developer Guide, "Using the Lambda runtime API for custom runtimes".

use std::{env, sync::Arc};

use axum::body::{Body, Bytes};
use futures_util::{StreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{CONTENT_TYPE, HOST, USER_AGENT},
    uri::Authority,
};
use http_body_util::BodyExt;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use lambda_http::lambda_runtime::{Context, Diagnostic};
use tokio::net::TcpStream;

use crate::{
    Error,
    event::{EventResponse, diagnostic, read_client_context},
};

const REQUEST_ID: HeaderName = HeaderName::from_static("lambda-runtime-aws-request-id");
const DEADLINE: HeaderName = HeaderName::from_static("lambda-runtime-deadline-ms");
const CLIENT_CONTEXT: HeaderName = HeaderName::from_static("lambda-runtime-client-context");
/// Sent back with the response, so that the platform can reject a response to another invocation.
const INVOCATION_ID: HeaderName = HeaderName::from_static("lambda-runtime-invocation-id");
const ERROR_TYPE: HeaderName = HeaderName::from_static("lambda-runtime-function-error-type");
const RESPONSE_MODE: HeaderName = HeaderName::from_static("lambda-runtime-function-response-mode");
/// The media type of a streamed response, which begins with the status and the headers.
const WITH_PRELUDE: &str = "application/vnd.awslambda.http-integration-response";
const AGENT: &str = concat!("lambda_tools/", env!("CARGO_PKG_VERSION"));

/// An event, its context and its id.
pub(super) struct Event {
    pub(super) body: Bytes,
    /// The error is for the platform.
    pub(super) context: Result<Context, Diagnostic>,
    pub(super) id: InvocationId,
}

/// The headers by which the platform recognizes the response to an event.
#[derive(Clone, Default)]
pub(super) struct InvocationId {
    request: String,
    invocation: Option<HeaderValue>,
}

/// One connection to the runtime API, which is opened again if it was closed.
pub(super) struct RuntimeApi {
    authority: Authority,
    /// The beginning of every path: not empty for cargo-lambda's emulator.
    base: String,
    connection: Option<SendRequest<Body>>,
}

impl RuntimeApi {
    pub(super) fn from_environment() -> Result<Self, Error> {
        Self::new(&env::var("AWS_LAMBDA_RUNTIME_API").unwrap_or_default())
    }

    fn new(address: &str) -> Result<Self, Error> {
        let invalid = || format!("AWS_LAMBDA_RUNTIME_API is not an address: {address}");
        let uri: Uri = address.parse().map_err(|_| invalid())?;
        Ok(Self {
            authority: uri.authority().ok_or_else(invalid)?.clone(),
            base: format!("{}/2018-06-01/runtime", uri.path().trim_end_matches('/')),
            connection: None,
        })
    }

    /// Waits until the platform has restored the process from its snapshot, which no connection
    /// survives.
    pub(super) async fn restore(&mut self) -> Result<(), Error> {
        self.get("restore/next").await?;
        self.connection = None;
        Ok(())
    }

    /// Waits for the next event.
    pub(super) async fn next(&mut self) -> Result<Event, Error> {
        let (mut parts, body) = self.get("invocation/next").await?.into_parts();
        let header = |name: &HeaderName| {
            let value = parts.headers.get(name).and_then(|it| it.to_str().ok());
            value.ok_or_else(|| format!("the runtime API sent no {name}"))
        };
        let request = header(&REQUEST_ID)?.to_owned();
        // `Context::new` would panic without it.
        header(&DEADLINE)?;
        Ok(Event {
            body,
            context: context(&request, &mut parts.headers),
            id: InvocationId {
                request,
                invocation: parts.headers.get(INVOCATION_ID).cloned(),
            },
        })
    }

    async fn get(&mut self, path: &str) -> Result<Response<Bytes>, Error> {
        let request = self.request(Method::GET, path, Body::empty())?;
        let (parts, body) = self.send(request).await?.into_parts();
        if parts.status != StatusCode::OK {
            return Err(format!("the runtime API answered {} to /{path}", parts.status).into());
        }
        Ok(Response::from_parts(
            parts,
            body.collect().await?.to_bytes(),
        ))
    }

    /// Sends the response to an event, or the error that it failed with.
    pub(super) async fn respond(
        &mut self,
        id: &InvocationId,
        response: Result<EventResponse, Diagnostic>,
    ) -> Result<(), Error> {
        let is_error = response.is_err();
        let is_stream = matches!(response, Ok(EventResponse::Stream(_)));
        let (kind, body) = match response {
            Ok(EventResponse::Whole(response)) => ("response", response.into()),
            Ok(EventResponse::Stream(response)) => {
                // Each part is a chunk.
                let prelude = stream::iter([Ok(response.prelude())]);
                let parts = prelude.chain(response.body.into_data_stream());
                ("response", Body::from_stream(parts))
            }
            Err(error) => ("error", serde_json::to_vec(&error)?.into()),
        };
        let path = format!("invocation/{}/{kind}", id.request);
        let mut request = self.request(Method::POST, &path, body)?;
        let headers = request.headers_mut();
        if let Some(invocation) = &id.invocation {
            headers.insert(INVOCATION_ID, invocation.clone());
        }
        if is_error {
            headers.insert(ERROR_TYPE, HeaderValue::from_static("unhandled"));
        }
        if is_stream {
            headers.insert(RESPONSE_MODE, HeaderValue::from_static("streaming"));
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(WITH_PRELUDE));
        }
        let response = match self.send(request).await {
            // Its last chunk is missing, which tells the platform that it is not whole.
            Err(error) if is_stream => {
                tracing::error!(%error, "a streamed response broke off");
                return Ok(());
            }
            response => response?,
        };
        let status = response.status();
        // Read to its end, so that the connection can be used again.
        response.into_body().collect().await?;
        if !status.is_success() {
            tracing::error!(%status, "Lambda rejected the response to an event");
        }
        Ok(())
    }

    fn request(&self, method: Method, path: &str, body: Body) -> Result<Request<Body>, Error> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = Uri::try_from(format!("{}/{path}", self.base))?;
        let headers = request.headers_mut();
        headers.insert(HOST, self.authority.as_str().parse()?);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    async fn send(&mut self, request: Request<Body>) -> Result<Response<Incoming>, Error> {
        let mut request = request;
        // The platform keeps the connection open, but nothing obliges it to.
        if let Some(connection) = &mut self.connection
            && connection.ready().await.is_ok()
        {
            match connection.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(error.into_error().into()),
                },
            }
        }
        let connection = self.connection.insert(connect(&self.authority).await?);
        Ok(connection.send_request(request).await?)
    }
}

fn context(request_id: &str, headers: &mut HeaderMap) -> Result<Context, Diagnostic> {
    // `Context::new` would accept only objects of strings.
    let sent = headers.remove(&CLIENT_CONTEXT);
    // Nothing reads the configuration of the function in the context.
    let context = Context::new(request_id, Arc::default(), headers);
    let mut context = context.map_err(|error| {
        let message = format!("The invocation's context cannot be read: {error}");
        diagnostic("UnsupportedContext", message)
    })?;
    if let Some(sent) = sent {
        read_client_context(sent.as_bytes(), &mut context);
    }
    Ok(context)
}

async fn connect(authority: &Authority) -> Result<SendRequest<Body>, Error> {
    let host = authority.host().trim_matches(['[', ']']);
    let port = authority.port_u16().unwrap_or(80);
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to the runtime API ended");
        }
    });
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        time::sleep,
    };

    use super::*;
    use crate::event::{EventSource, StreamedResponse};

    #[tokio::test]
    async fn a_stream_that_fails_has_no_last_chunk_and_fails_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut api = RuntimeApi::new(&address).unwrap();
        let failure = async {
            sleep(Duration::from_millis(20)).await;
            Err("it broke")
        };
        let parts = stream::iter([Ok("one")]).chain(stream::once(failure));
        let streamed = StreamedResponse {
            source: EventSource::Http,
            parts: Response::new(()).into_parts().0,
            body: Body::from_stream(parts),
        };
        let id = InvocationId::default();
        let received = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut received = String::new();
            stream.read_to_string(&mut received).await.unwrap();
            received
        };
        let responding = api.respond(&id, Ok(EventResponse::Stream(Box::new(streamed))));
        let (received, responded) = tokio::join!(received, responding);
        responded.unwrap();
        let end = "\0\0\0\0\0\0\0\0\r\n3\r\none\r\n";
        assert!(received.ends_with(end), "{received:?}");
        // The next request has a connection of its own, and so has the one after a restoration.
        let (restored, (request, _stream)) = tokio::join!(
            api.restore(),
            accepted(&listener, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        );
        restored.unwrap();
        let line = "GET /2018-06-01/runtime/restore/next HTTP/1.1\r\n";
        assert!(request.starts_with(line), "{request}");
        let (responded, _) = tokio::join!(
            api.respond(&id, Ok(EventResponse::Whole("{}".into()))),
            accepted(
                &listener,
                "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
            )
        );
        responded.unwrap();
    }

    /// Accepts a connection and answers its first request. Returns the request and the connection.
    async fn accepted(listener: &TcpListener, response: &str) -> (String, TcpStream) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let length = stream.read(&mut request).await.unwrap();
        stream.write_all(response.as_bytes()).await.unwrap();
        let request = String::from_utf8_lossy(&request[..length]).into_owned();
        (request, stream)
    }
}
