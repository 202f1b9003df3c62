//! A protocol whose responses are streams.

use std::{
    convert::Infallible,
    future::{pending, ready},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use axum::{Router, body::HttpBody};
use futures_util::stream;
use http::{Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::{
    Notify,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};
use tower::ServiceExt;
use tracing::subscriber::{DefaultGuard, set_default};

use super::*;
use crate::{
    Context, Failure, Server, Tool, Toolkit,
    arrival::Invocation,
    assemble::assemble,
    call::{Call, Outcome},
    clock::REAL,
    observe::tests::Lines,
    protocol::{
        codec::{Codec, Declaration, DecodedRequest, EncodedRequest, Operation, Purpose, Route},
        encoded_list::EncodedList,
        http::mount,
        listed_tools::ListedTools,
        refusal::Refusal,
    },
};

/// The texts that a tool sends while it runs.
type Texts = UnboundedSender<&'static str>;

/// Calls a tool by its id, and answers with the texts that it sends, then with its outcome.
struct Ticks(Mutex<Option<UnboundedReceiver<&'static str>>>);

impl Codec for Ticks {
    const DECLARATION: &'static Declaration = &Declaration {
        routes: &[Route::post("/ticks", Purpose::Call("POST /ticks"))],
        fixed_headers: &[("x-ticks", "1")],
        ..Declaration::BASE
    };

    type Format = Option<UnboundedReceiver<&'static str>>;

    fn decode(&self, _: Purpose, request: &EncodedRequest<'_>) -> DecodedRequest<Self::Format> {
        let tool_id = str::from_utf8(request.body).unwrap();
        DecodedRequest {
            format: self.0.lock().unwrap_or_else(PoisonError::into_inner).take(),
            operation: Operation::Call(Box::new(Call::new(tool_id.parse().unwrap(), json!({})))),
        }
    }

    fn dialect(_: &Self::Format) -> &'static str {
        "ticks"
    }

    fn list(&self, _: &Self::Format, _: &ListedTools<'_>) -> Arc<EncodedList> {
        EncodedList::of(&json!([]))
    }

    fn list_error(&self, _: &Self::Format, detail: &str) -> (StatusCode, Vec<u8>) {
        (StatusCode::OK, Vec::from(detail))
    }

    fn early_chunks(format: &mut Self::Format, _: &mut Call) -> Option<Body> {
        let texts = format.take()?;
        // An empty text ends the stream, which panics if it is polled again.
        let next = async |mut texts: UnboundedReceiver<_>| match texts.recv().await? {
            "" => None,
            text => Some((text, texts)),
        };
        Some(body_of(stream::unfold(texts, next)))
    }

    fn outcome(&self, _: &Self::Format, outcome: &Outcome) -> (StatusCode, Vec<u8>) {
        let text = match &outcome.result {
            Ok(output) => json!(output).to_string(),
            Err(failure) => {
                let detail = failure.parts().developer_message.as_deref();
                format!("{}: {}", failure.message(), detail.unwrap_or_default())
            }
        };
        (StatusCode::OK, text.into_bytes())
    }

    fn refusal(&self, _: &Self::Format, _: &Refusal) -> (StatusCode, Vec<u8>) {
        (StatusCode::NOT_FOUND, Vec::from("refused"))
    }
}

fn body_of<S>(chunks: S) -> Body
where
    S: stream::Stream<Item: Into<Bytes>> + Send + 'static,
{
    Body::from_stream(stream::StreamExt::map(chunks, Ok::<_, Infallible>))
}

/// A server of the protocol with one tool, and the log of its calls.
struct Fixture {
    router: Router,
    lines: Lines,
    _subscriber: DefaultGuard,
}

impl Fixture {
    /// Creates a server with the tool `Ticks.Run`, which can send texts while it runs.
    fn new<F>(run: impl Fn(Texts) -> F + Clone + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Value, Failure>> + Send + 'static,
    {
        let (texts, sent) = unbounded_channel();
        let run = move |_: Value, _: Context| run(texts.clone());
        let input = json!({"type": "object"});
        let tool = Tool::dynamic("Ticks.Run@1.0.0", "Ticks.", input, json!({}), run);
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_ansi(false);
        let subscriber = set_default(subscriber.with_writer(lines.clone()).finish());
        let server = Server::new(Toolkit::new([tool]).unwrap());
        let codec = Ticks(Mutex::new(Some(sent)));
        let app = assemble(server, REAL, REAL).1;
        let router = mount(Router::new(), codec).with_state(app);
        Self {
            router,
            lines,
            _subscriber: subscriber,
        }
    }

    async fn call(&self, tool: &'static str, mut invocation: Invocation) -> Response {
        invocation.streams = true;
        let request = Request::post("/ticks").extension(Arc::new(invocation));
        let request = request.body(Body::from(tool)).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Returns the outcomes in the log.
    fn logged(&self) -> Vec<String> {
        let log = self.lines.text();
        let lines = log.lines().filter_map(|line| line.split_once("outcome=\""));
        lines
            .map(|(_, rest)| rest.split('"').next().unwrap().to_owned())
            .collect()
    }
}

async fn next(body: &mut Body) -> Option<String> {
    let chunk = tokio::time::timeout(Duration::from_secs(10), body.frame());
    let chunk = chunk.await.unwrap()?.unwrap().into_data().unwrap();
    let text = String::from_utf8(chunk.to_vec()).unwrap();
    // The response of a call that has been a stream is an event.
    let event = text.strip_prefix("event: message\ndata: ");
    let event = event.map(|it| it.strip_suffix("\n\n").unwrap().to_owned());
    Some(event.unwrap_or(text))
}

/// Returns all chunks of a stream that begins with "early".
async fn chunks_of(response: Response) -> Vec<String> {
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    let (mut body, mut chunks) = (response.into_body(), Vec::new());
    while let Some(chunk) = next(&mut body).await {
        chunks.push(chunk);
    }
    assert_eq!(chunks[0], "early");
    chunks
}

#[tokio::test]
async fn chunks_are_sent_while_the_call_runs_and_it_is_logged_at_its_end() {
    let go = Arc::new(Notify::new());
    let gate = Arc::clone(&go);
    let server = Fixture::new(move |texts| {
        let gate = Arc::clone(&gate);
        async move {
            texts.send("first").unwrap();
            gate.notified().await;
            texts.send("second").unwrap();
            Ok(json!(3))
        }
    });
    let response = server.call("Ticks.Run", Invocation::default()).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    assert_eq!(response.headers()["x-ticks"], "1");
    assert_eq!(response.body().size_hint().exact(), None);
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await.unwrap(), "first");
    let early = tokio::time::timeout(Duration::from_millis(50), body.frame()).await;
    assert!(early.is_err(), "the tool waits");
    assert_eq!(server.logged(), [""; 0]);
    go.notify_one();
    assert_eq!(next(&mut body).await.unwrap(), "second");
    assert_eq!(next(&mut body).await.unwrap(), "3");
    assert_eq!(next(&mut body).await, None);
    assert_eq!(server.logged(), ["success"]);
}

/// tokio interrupts a task that has received 128 values, although more are there.
#[tokio::test]
async fn no_chunk_of_many_is_lost_when_the_call_ends() {
    let server = Fixture::new(|texts| async move {
        texts.send("early").unwrap();
        tokio::task::yield_now().await;
        for _ in 0..300 {
            texts.send("more").unwrap();
        }
        Ok(json!("last"))
    });
    let body = server
        .call("Ticks.Run", Invocation::default())
        .await
        .into_body();
    let text = body.collect().await.unwrap().to_bytes();
    let last = "event: message\ndata: \"last\"\n\n";
    assert_eq!(text, format!("early{}{last}", "more".repeat(300)));
}

#[tokio::test]
async fn a_call_outlives_its_early_chunks() {
    let server = Fixture::new(|texts| async move {
        texts.send("early").unwrap();
        texts.send("").unwrap();
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(json!(7))
    });
    let chunks = chunks_of(server.call("Ticks.Run", Invocation::default()).await).await;
    assert_eq!(chunks, ["early", "7"]);
}

#[tokio::test]
async fn a_call_without_early_chunks_gets_a_whole_response() {
    for (id, status, text, outcome) in [
        ("Ticks.Run", StatusCode::OK, "7", "success"),
        ("Ticks.Other", StatusCode::NOT_FOUND, "refused", "rejection"),
    ] {
        let server = Fixture::new(|_| ready(Ok(json!(7))));
        let response = server.call(id, Invocation::default()).await;
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let length = response.body().size_hint().exact();
        assert_eq!(length, Some(text.len() as u64));
        assert_eq!(next(&mut response.into_body()).await.unwrap(), text);
        assert_eq!(server.logged(), [outcome]);
    }
}

#[tokio::test]
async fn an_outcome_that_is_too_large_for_a_stream_becomes_a_failure() {
    let server = Fixture::new(|texts| {
        texts.send("early").unwrap();
        ready(Ok(json!("x".repeat(1000))))
    });
    let invocation = Invocation {
        max_response_size: 3000,
        ..Invocation::default()
    };
    let chunks = chunks_of(server.call("Ticks.Run", invocation).await).await;
    let detail = "The response would be 3052 bytes; at most 3000 can be sent.";
    let text = format!("The tool's result is too large to send: {detail}");
    assert_eq!(chunks[1..], [text]);
    assert_eq!(server.logged(), ["failure"]);
}

#[tokio::test]
async fn a_stream_ends_at_the_deadline_of_its_call() {
    let server = Fixture::new(|texts| {
        texts.send("early").unwrap();
        pending()
    });
    let started = Instant::now();
    let invocation = Invocation {
        deadline: Some(SystemTime::now() + Duration::from_millis(500)),
        ..Invocation::default()
    };
    let chunks = chunks_of(server.call("Ticks.Run", invocation).await).await;
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(chunks.len(), 2, "{chunks:?}");
    let text = "The tool did not finish in time: The tool was stopped after";
    assert!(chunks[1].starts_with(text), "{chunks:?}");
    assert_eq!(server.logged(), ["failure"]);
}

#[tokio::test]
async fn a_dropped_stream_ends_its_call_and_is_logged_as_abandoned() {
    let ended = Arc::new(Notify::new());
    let has_ended = Arc::clone(&ended);
    let server = Fixture::new(move |texts| {
        struct NotifyOnDrop(Arc<Notify>);
        impl Drop for NotifyOnDrop {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let guard = NotifyOnDrop(Arc::clone(&has_ended));
        async move {
            let _guard = guard;
            texts.send("early").unwrap();
            pending().await
        }
    });
    let response = server.call("Ticks.Run", Invocation::default()).await;
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await.unwrap(), "early");
    drop(body);
    assert_eq!(server.logged(), ["abandoned"]);
    let ended = tokio::time::timeout(Duration::from_secs(10), ended.notified());
    ended.await.unwrap();
}

/// On several threads, a tool may send a chunk and end between two polls.
#[tokio::test]
async fn a_chunk_that_is_sent_just_before_the_end_precedes_the_response() {
    let (texts, mut sent) = unbounded_channel();
    texts.send("first").unwrap();
    let call = async move {
        tokio::task::yield_now().await;
        texts.send("second").unwrap();
        Response::new(Body::from("last"))
    };
    let chunks = body_of(stream::poll_fn(move |context| sent.poll_recv(context)));
    let body = streamed(chunks, Box::pin(call)).await;
    let mut body = body.expect("the first chunk was sent before the call ended");
    for text in ["first", "second", "last"] {
        assert_eq!(next(&mut body).await.unwrap(), text);
    }
    assert_eq!(next(&mut body).await, None);
}
