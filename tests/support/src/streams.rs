//! A runtime API that records in which chunks, and when, a function sends its responses; and the
//! event sources that pass them on.
//!
//! It reads TCP itself, because libraries for HTTP may merge or split chunks.

use std::{
    collections::{BTreeMap, HashMap},
    io::{Error, ErrorKind, Result},
    pin::Pin,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant, SystemTime},
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    response::Response,
};
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::JoinHandle,
};

use crate::{
    Running, Served, answer,
    function_url::{event_of, response_of},
    lambda::{LAMBDA, RUNTIME, request_id},
};

/// What a streamed response has between its prelude and its body.
const SEPARATOR: [u8; 8] = [0; 8];

/// The media type of a streamed response with a prelude.
pub const WITH_PRELUDE: &str = "application/vnd.awslambda.http-integration-response";

/// A function under the runtime API.
pub struct Streams {
    /// The function's process.
    pub function: Running,
    events: Events,
    server: JoinHandle<()>,
}

/// Where events are sent to the function.
#[derive(Clone)]
struct Events(UnboundedSender<Invocation>);

/// An event, its time limit and where the answer goes.
struct Invocation {
    event: String,
    limit: Duration,
    parts: UnboundedSender<Part>,
}

/// A part of the answer to an event.
enum Part {
    /// The function has asked for the event and got it.
    Delivered(Instant),
    /// `response` or `error`, and the headers.
    Head(String, BTreeMap<String, String>),
    Chunk(Instant, Vec<u8>),
    End,
}

/// An answer of which parts may still come.
pub struct Coming {
    parts: UnboundedReceiver<Part>,
    read: Sent,
}

/// What a function has sent for an event.
#[derive(Debug, Default)]
pub struct Sent {
    /// The time at which it got the event.
    pub delivered: Option<Instant>,
    /// `response` or `error`.
    pub kind: String,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The chunks and when they came. A body with a length counts as one chunk.
    pub chunks: Vec<(Instant, Vec<u8>)>,
    /// True if the body has come to its end.
    pub is_complete: bool,
}

/// A streamed response, as an event source that streams understands it.
#[derive(Debug)]
pub struct Streamed {
    /// What precedes the body: `statusCode`, `headers` and `cookies`.
    pub prelude: Value,
    /// The chunks of the body, and when they came.
    pub chunks: Vec<(Instant, String)>,
}

impl Streams {
    /// Starts a function with these environment variables.
    pub async fn start(command: &mut Command, environment: &[(&str, &str)]) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let api = Arc::new(RuntimeApi {
            events: tokio::sync::Mutex::new(receiver),
            running: Mutex::default(),
            number: AtomicUsize::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(accept(listener, api));
        command
            .env("AWS_LAMBDA_RUNTIME_API", &address)
            .envs(LAMBDA)
            .envs(RUNTIME)
            .env("TOOLS_AUTH", "none")
            .envs(environment.iter().copied());
        Self {
            function: Running::start(command),
            events: Events(sender),
            server,
        }
    }

    /// Sends an event with a time limit. The function handles one event after the other.
    pub fn send(&self, event: &Value, limit: Duration) -> Coming {
        self.events.send(event, limit)
    }

    /// Sends an event, and waits for the whole answer.
    pub async fn answer(&self, event: &Value) -> Sent {
        self.send(event, Duration::from_secs(20)).whole().await
    }

    /// Stops the function; returns the lines it printed.
    pub fn end(self) -> Vec<String> {
        self.server.abort();
        self.function.end()
    }
}

impl Events {
    fn send(&self, event: &Value, limit: Duration) -> Coming {
        let (parts, receiver) = mpsc::unbounded_channel();
        let invocation = Invocation {
            event: event.to_string(),
            limit,
            parts,
        };
        self.0.send(invocation).unwrap();
        Coming {
            parts: receiver,
            read: Sent::default(),
        }
    }
}

impl Coming {
    /// Waits for the next part. False at the end.
    async fn advance(&mut self) -> bool {
        let next = tokio::time::timeout(Duration::from_secs(30), self.parts.recv()).await;
        let Some(part) = next.expect("the function goes on") else {
            return false;
        };
        self.add(part);
        true
    }

    fn add(&mut self, part: Part) {
        let read = &mut self.read;
        match part {
            Part::Delivered(at) => read.delivered = Some(at),
            Part::Head(kind, headers) => (read.kind, read.headers) = (kind, headers),
            Part::Chunk(at, chunk) => read.chunks.push((at, chunk)),
            Part::End => read.is_complete = true,
        }
    }

    /// Waits until the answer contains this text.
    pub async fn until(&mut self, text: &str) {
        while !self.read.text().contains(text) {
            assert!(self.advance().await, "no {text} in {}", self.read.text());
        }
    }

    /// Waits for the end of the answer, also if the function's process ends before.
    pub async fn whole(mut self) -> Sent {
        while self.advance().await {}
        self.read
    }
}

impl Sent {
    /// Returns the body as text, with everything that precedes it.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    fn bytes(&self) -> Vec<u8> {
        let chunks = self.chunks.iter().map(|(_, chunk)| &**chunk);
        chunks.collect::<Vec<_>>().concat()
    }

    /// Returns true if the function has announced a streamed response.
    pub fn is_streamed(&self) -> bool {
        self.headers
            .get("lambda-runtime-function-response-mode")
            .is_some_and(|mode| mode == "streaming")
    }

    /// Returns the response, if it has a prelude and its separator, which end with a chunk.
    pub fn streamed(&self) -> Option<Streamed> {
        let mut head = Vec::new();
        let mut chunks = self.chunks.iter();
        while !head.ends_with(&SEPARATOR) {
            head.extend_from_slice(&chunks.next()?.1);
        }
        let prelude = serde_json::from_slice(&head[..head.len() - SEPARATOR.len()]).ok()?;
        let text = |chunk: &[u8]| String::from_utf8(chunk.to_vec()).unwrap();
        Some(Streamed {
            prelude,
            chunks: chunks.map(|(at, chunk)| (*at, text(chunk))).collect(),
        })
    }

    /// Returns what the client of an event source that streams gets: the status and the body.
    /// API Gateway and function URLs answer for a function whose response they cannot read.
    pub fn through_streaming_source(&self) -> (u64, String) {
        match self.streamed().filter(|_| self.kind == "response") {
            Some(streamed) => (streamed.status(), streamed.text()),
            // A function URL takes what has no prelude for the body.
            None if self.kind == "response" => (200, self.text()),
            None => (502, "Internal Server Error".into()),
        }
    }

    /// Returns what the client of an event source that does not stream gets: it waits for the end, and
    /// expects JSON.
    pub fn through_buffered_source(&self) -> (u64, String) {
        let json = serde_json::from_slice::<Value>(&self.bytes()).ok();
        match json.filter(|_| self.kind == "response") {
            Some(response) if response["statusCode"].is_u64() => {
                let body = response["body"].as_str().unwrap_or_default();
                (response["statusCode"].as_u64().unwrap(), body.to_owned())
            }
            _ => (502, "Internal Server Error".into()),
        }
    }
}

impl Streamed {
    /// Returns the status.
    pub fn status(&self) -> u64 {
        self.prelude["statusCode"].as_u64().unwrap()
    }

    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.prelude["headers"][name].as_str()
    }

    /// Returns the body.
    pub fn text(&self) -> String {
        self.chunks.iter().map(|(_, chunk)| &**chunk).collect()
    }
}

struct RuntimeApi {
    events: tokio::sync::Mutex<UnboundedReceiver<Invocation>>,
    /// Where the answers to the events that were delivered go, by request ids.
    running: Mutex<HashMap<String, UnboundedSender<Part>>>,
    number: AtomicUsize,
}

async fn accept(listener: TcpListener, api: Arc<RuntimeApi>) {
    // Aborts the connections when the server is aborted.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let api = Arc::clone(&api);
        connections.spawn(async move {
            let mut stream = BufStream::new(stream);
            while api.exchange(&mut stream).await.is_ok() {}
        });
    }
}

impl RuntimeApi {
    /// Reads a request and responds to it.
    async fn exchange(&self, stream: &mut BufStream<TcpStream>) -> Result<()> {
        let request = line(stream).await?;
        let path = request.split(' ').nth(1).ok_or(ErrorKind::InvalidData)?;
        let headers = fields(stream).await?;
        let name: Vec<_> = path.trim_matches('/').split('/').collect();
        match name[..] {
            [_, "runtime", "invocation", "next"] => self.next(stream).await,
            [_, "runtime", "invocation", id, kind] => {
                let parts = self.running.lock().unwrap().remove(id);
                let parts = parts.expect("the function responds once to an event it got");
                let _ = parts.send(Part::Head(kind.to_owned(), headers.clone()));
                body(stream, &headers, &parts).await?;
                respond(stream, "202 Accepted", "", "").await
            }
            [_, "extension", "register"] => {
                body(stream, &headers, &mpsc::unbounded_channel().0).await?;
                let id = "lambda-extension-identifier: 6c1b4c2e\r\n";
                let function = json!({"functionName": "toolbox", "functionVersion": "1", "handler": "bootstrap"});
                respond(stream, "200 OK", id, &function.to_string()).await
            }
            // An internal extension gets no events.
            _ => std::future::pending().await,
        }
    }

    async fn next(&self, stream: &mut BufStream<TcpStream>) -> Result<()> {
        let next = self.events.lock().await.recv().await;
        let Some(Invocation {
            event,
            limit,
            parts,
        }) = next
        else {
            return std::future::pending().await;
        };
        let id = request_id(self.number.fetch_add(1, Ordering::Relaxed));
        let deadline = SystemTime::now() + limit;
        let deadline = deadline.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let headers = format!(
            "lambda-runtime-aws-request-id: {id}\r\n\
             lambda-runtime-deadline-ms: {}\r\n\
             lambda-runtime-invoked-function-arn: arn:aws:lambda:us-east-1:1:function:t\r\n",
            deadline.as_millis(),
        );
        let _ = parts.send(Part::Delivered(Instant::now()));
        self.running.lock().unwrap().insert(id, parts);
        respond(stream, "200 OK", &headers, &event).await
    }
}

/// Passes on the chunks of a body.
async fn body(
    stream: &mut BufStream<TcpStream>,
    headers: &BTreeMap<String, String>,
    parts: &UnboundedSender<Part>,
) -> Result<()> {
    if let Some(length) = headers.get("content-length") {
        let mut body = vec![0; length.parse().map_err(Error::other)?];
        stream.read_exact(&mut body).await?;
        let _ = parts.send(Part::Chunk(Instant::now(), body));
        let _ = parts.send(Part::End);
        return Ok(());
    }
    loop {
        let size = line(stream).await?;
        let size = usize::from_str_radix(&size, 16).map_err(Error::other)?;
        if size == 0 {
            assert_eq!(line(stream).await?, "", "nothing follows the last chunk");
            let _ = parts.send(Part::End);
            return Ok(());
        }
        let mut chunk = vec![0; size];
        stream.read_exact(&mut chunk).await?;
        let _ = parts.send(Part::Chunk(Instant::now(), chunk));
        let end = line(stream).await?;
        assert_eq!(end, "", "a chunk ends with a line break");
    }
}

/// Reads headers.
async fn fields(stream: &mut BufStream<TcpStream>) -> Result<BTreeMap<String, String>> {
    let mut fields = BTreeMap::new();
    loop {
        let line = line(stream).await?;
        let Some((name, value)) = line.split_once(':') else {
            return Ok(fields);
        };
        fields.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

/// Reads a line; returns it without its break.
async fn line(stream: &mut BufStream<TcpStream>) -> Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let line = line.strip_suffix("\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    Ok(line.to_owned())
}

async fn respond(
    stream: &mut BufStream<TcpStream>,
    status: &str,
    headers: &str,
    body: &str,
) -> Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.flush().await
}

/// A function behind a function URL that streams, on a loopback address.
pub struct StreamingUrl {
    /// Where clients call the function.
    pub url: String,
    /// The function.
    pub streams: Streams,
    _served: Served,
}

impl StreamingUrl {
    /// Starts a function with these environment variables. It must stream the responses to function
    /// URLs.
    pub async fn start(command: &mut Command, environment: &[(&str, &str)]) -> Self {
        let streams = Streams::start(command, environment).await;
        let router = Router::new()
            .fallback(forward)
            .with_state(streams.events.clone());
        let served = Served::start(router).await;
        Self {
            url: served.url.clone(),
            streams,
            _served: served,
        }
    }
}

/// Invokes the function with a request, and passes on the response as it comes.
async fn forward(State(events): State<Events>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 6 << 20).await.unwrap();
    let mut coming = events.send(&event_of(&parts, &body), Duration::from_mins(1));
    let streamed = loop {
        if !coming.advance().await || coming.read.kind == "error" {
            return answer(502, &[], "Internal Server Error");
        }
        if let Some(streamed) = coming.read.streamed() {
            break streamed;
        }
    };
    let (head, _) = response_of(&streamed.prelude).into_parts();
    let body = Passed {
        read: streamed.chunks,
        parts: coming.parts,
    };
    Response::from_parts(head, Body::new(body))
}

/// The chunks of a response, as they come.
struct Passed {
    read: Vec<(Instant, String)>,
    parts: UnboundedReceiver<Part>,
}

impl HttpBody for Passed {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        if !self.read.is_empty() {
            let chunk = self.read.remove(0).1;
            return Poll::Ready(Some(Ok(Frame::data(chunk.into()))));
        }
        self.parts.poll_recv(context).map(|part| match part {
            Some(Part::Chunk(_, chunk)) => Some(Ok(Frame::data(chunk.into()))),
            Some(Part::End) => None,
            _ => Some(Err(Error::other("the function failed"))),
        })
    }
}
