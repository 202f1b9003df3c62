//! Calls with progress, in paused time.

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{Router, response::Response};
use futures_util::FutureExt;
use http::{
    Request, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use http_body_util::BodyExt;
use serde_json::json;
use test_support::lines::Lines;
use tokio::time::sleep;
use tower::ServiceExt;
use tracing::subscriber::{DefaultGuard, set_default};

use super::*;
use crate::{
    Context, Failure, Server, Tool, Toolkit, arrival::Invocation, assemble::assemble, clock::REAL,
};

/// Returns a server with the tool `Long_Run`, which returns 7.
fn server<F>(run: impl Fn(Context) -> F + Clone + Send + Sync + 'static) -> Router
where
    F: Future<Output = ()> + Send + 'static,
{
    server_of(move |cx| run(cx).map(|()| json!(7)))
}

/// Returns a server with the tool `Long_Run`.
fn server_of<F>(run: impl Fn(Context) -> F + Clone + Send + Sync + 'static) -> Router
where
    F: Future<Output = Value> + Send + 'static,
{
    let run = move |_: Value, cx: Context| run(cx).map(Ok::<_, Failure>);
    let schema = json!({"type": "object"});
    let tool = Tool::dynamic("Long.Run@1.0.0", "Takes long.", schema, json!({}), run);
    let tool = tool.timeout(Duration::from_mins(15));
    assemble(Server::new(Toolkit::new([tool]).unwrap()), REAL, REAL).0
}

/// The media types of a client that takes streams.
const STREAMS: &str = "application/json, text/event-stream";

fn streaming() -> Invocation {
    Invocation {
        streams: true,
        ..Invocation::default()
    }
}

/// Sends the call of a legacy client.
async fn send(server: Router, token: &Value, accept: &str, invocation: Invocation) -> Response {
    let params = json!({"name": "Long_Run", "_meta": {"progressToken": token}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = Request::post("/mcp")
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, accept)
        .extension(Arc::new(invocation));
    let request = request.body(Body::from(body.to_string())).unwrap();
    server.oneshot(request).await.unwrap()
}

/// Sends a call that asks for progress.
async fn ask(server: Router) -> Response {
    send(server, &json!("t"), STREAMS, streaming()).await
}

/// Returns the chunks of a stream, and the milliseconds since now at which they came.
async fn chunks_of(response: Response) -> Vec<(u128, String)> {
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let begun = Instant::now();
    let (mut body, mut chunks) = (response.into_body(), Vec::new());
    while let Some(frame) = body.frame().await {
        let chunk = frame.unwrap().into_data().unwrap().to_vec();
        let chunk = String::from_utf8(chunk).unwrap();
        chunks.push((begun.elapsed().as_millis(), chunk));
    }
    chunks
}

/// Returns the params of the notifications of a call, after checking that its response is the last
/// event.
async fn notified(server: Router) -> Vec<(u128, Value)> {
    let chunks = chunks_of(ask(server).await).await;
    let events = chunks.into_iter().map(|(at, chunk)| {
        let json = chunk
            .strip_prefix("event: message\ndata: ")
            .and_then(|it| it.strip_suffix("\n\n"));
        let event = serde_json::from_str(json.expect("a chunk is an event")).unwrap();
        (at, event)
    });
    let mut events: Vec<(u128, Value)> = events.collect();
    let (_, response) = events.pop().unwrap();
    assert_eq!(response["id"], 1);
    assert_eq!(response["result"]["structuredContent"]["result"], 7);
    let params = events.into_iter().map(|(at, mut event)| {
        assert_eq!(event["method"], "notifications/progress");
        assert_eq!(event["params"]["progressToken"], "t");
        (at, event["params"].take())
    });
    params.collect()
}

fn progress_of(params: &[(u128, Value)]) -> Vec<f64> {
    let done = params.iter().map(|(_, it)| it["progress"].as_f64());
    done.map(Option::unwrap).collect()
}

/// Asserts that a response is the result of the tool, and no stream.
async fn assert_json(response: Response) {
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["result"], 7);
}

async fn ms(ms: u64) {
    sleep(Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn a_report_is_an_event_at_once_and_the_response_is_the_last_one() {
    let server = server(|cx| async move {
        cx.progress(1, 3.0, "one\n\"line\"");
        ms(100).await;
        cx.progress(1.5, None, "");
        ms(100).await;
    });
    let first = json!({
        "progressToken": "t", "progress": 1.0, "total": 3.0, "message": "one\n\"line\"",
    });
    let second = json!({"progressToken": "t", "progress": 1.5});
    assert_eq!(notified(server).await, [(0, first), (100, second)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_token_or_streams_gets_json() {
    let server = server(|cx| async move {
        cx.progress(1, None, "");
        ms(30_000).await;
    });
    for token in [json!("x"), json!(""), json!(0), json!(-1), json!(u64::MAX)] {
        let response = send(server.clone(), &token, STREAMS, streaming()).await;
        let chunks = chunks_of(response).await;
        let sent = format!("\"progressToken\":{token},");
        assert!(chunks[0].1.contains(&sent), "{chunks:?}");
    }
    // A token is a string or an integer.
    for token in [json!(null), json!(1.5), json!(true), json!([1]), json!({})] {
        assert_json(send(server.clone(), &token, STREAMS, streaming()).await).await;
    }
    for other in ["", ", text/html", ", text/event-stream-like"] {
        let accept = format!("application/json{other}");
        assert_json(send(server.clone(), &json!("t"), &accept, streaming()).await).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_before_its_first_report_gets_json() {
    let quick = server(|_| ms(9_999));
    assert_json(ask(quick).await).await;
}

#[tokio::test(start_paused = true)]
async fn progress_increases_also_if_the_tools_does_not() {
    let server = server(|cx| async move {
        for done in [5.0, 3.0, 5.0, 5.5, -1.0, 6.0] {
            cx.progress(done, None, "");
            ms(50).await;
        }
        // After a repetition, whose progress was made up.
        ms(11_000).await;
        cx.progress(6.000_000_1, None, "");
        ms(50).await;
        cx.progress(1e300, None, "");
        ms(25_000).await;
    });
    let progress = progress_of(&notified(server).await);
    assert_eq!(progress[..3], [5.0, 5.5, 6.0]);
    assert_eq!(progress.len(), 8, "{progress:?}");
    assert!(
        progress.is_sorted_by(|one, next| one < next),
        "{progress:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn of_many_reports_the_newest_is_sent_after_a_pause() {
    let server = server(|cx| async move {
        for done in 1..=1000 {
            cx.progress(done, None, format!("at {done}"));
            ms(1).await;
        }
    });
    let params = notified(server).await;
    assert!((40..=51).contains(&params.len()), "{}", params.len());
    let mut times: Vec<_> = params.iter().map(|(at, _)| *at).collect();
    // The last report does not wait.
    times.pop();
    assert!(times.windows(2).all(|it| it[1] - it[0] >= 20), "{times:?}");
    for (at, params) in &params {
        let done = params["progress"].as_f64().unwrap();
        assert_eq!(params["message"], format!("at {done}"));
        let at = f64::from(u32::try_from(*at).unwrap());
        assert!((0.0..=2.0).contains(&(done - at)), "{done} at {at}");
    }
    assert_eq!(params.last().unwrap().1["progress"], 1000.0);
}

/// Such as a function that is not async and goes on after its time limit.
#[tokio::test(start_paused = true)]
async fn the_last_report_is_sent_and_nothing_after_the_response_although_the_context_lives_on() {
    let server = server(|cx| async move {
        cx.progress(1, None, "");
        ms(5).await;
        cx.progress(2, None, "");
        cx.progress(3, None, "");
        tokio::spawn(async move {
            for done in 4..100 {
                ms(1).await;
                cx.progress(done, None, "");
            }
        });
    });
    let params = notified(server).await;
    assert_eq!(progress_of(&params), [1.0, 3.0]);
    assert_eq!(params[1].0, 5);
}

#[tokio::test(start_paused = true)]
async fn the_last_report_is_repeated_after_a_silence() {
    let silent = notified(server(|_| ms(25_000))).await;
    let params = |progress: f64| json!({"progressToken": "t", "progress": progress});
    // 10 seconds after the pause that follows every notification.
    assert_eq!(silent, [(0, params(0.0)), (10_020, params(1e-6))]);
    let server = server(|cx| async move {
        cx.progress(2, 4.0, "half");
        ms(25_000).await;
        cx.progress(3, 4.0, "more");
        ms(9_999).await;
    });
    let params = notified(server).await;
    let done = progress_of(&params).into_iter();
    let thousandths: Vec<_> = done.map(|it| (it * 1000.0).trunc()).collect();
    assert_eq!(thousandths, [2000.0, 2000.0, 2000.0, 3000.0]);
    let times: Vec<_> = params.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 10_020, 20_040, 25_000]);
    for (_, params) in &params[..3] {
        assert_eq!(params["message"], "half");
        assert_eq!(params["total"], 4.0);
    }
}

/// Returns a log, and the outcomes in it.
fn log() -> (DefaultGuard, impl Fn() -> Vec<String>) {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false);
    let guard = set_default(subscriber.with_writer(lines.clone()).finish());
    let outcomes = move || {
        let log = lines.text();
        let rest = log.split("outcome=\"").skip(1);
        rest.map(|it| it.split('"').next().unwrap().to_owned())
            .collect()
    };
    (guard, outcomes)
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_stream_obeys_the_limits_of_its_call_and_is_logged_at_its_end() {
    for (size, time, text) in [
        (3000, 60_000, "The tool's result is too large to send"),
        (usize::MAX, 500, "The tool did not finish in time"),
    ] {
        let (_guard, logged) = log();
        let server = server_of(|cx| async move {
            cx.progress(1, None, "");
            ms(600).await;
            json!("x".repeat(1000))
        });
        let deadline = SystemTime::now() + Duration::from_millis(time);
        let invocation = Invocation {
            max_response_size: Some(size),
            deadline: Some(deadline),
            ..streaming()
        };
        let response = send(server, &json!("t"), STREAMS, invocation).await;
        let mut body = response.into_body();
        assert!(body.frame().await.is_some());
        assert_eq!(logged(), [""; 0]);
        let rest = body.collect().await.unwrap().to_bytes();
        let rest = String::from_utf8_lossy(&rest);
        assert!(rest.contains(text), "{rest}");
        assert_eq!(logged(), ["failure"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_ends_its_call_and_is_logged_as_abandoned() {
    let (_guard, logged) = log();
    let running = Arc::new(());
    let held = Arc::downgrade(&running);
    let server = server(move |cx| {
        let running = held.upgrade();
        async move {
            cx.progress(1, None, "");
            pending::<()>().await;
            drop(running);
        }
    });
    let mut body = ask(server).await.into_body();
    assert!(body.frame().await.is_some());
    assert_eq!(Arc::strong_count(&running), 2);
    drop(body);
    assert_eq!(logged(), ["abandoned"]);
    ms(10).await;
    assert_eq!(Arc::strong_count(&running), 1);
}
