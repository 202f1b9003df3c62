//! Calls with progress, in paused time.

mod limits;

use std::{sync::Arc, time::Duration};

use axum::{Router, response::Response};
use futures_util::FutureExt;
use http::{Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::sleep;
use tower::ServiceExt;

use super::*;
use crate::{
    Context, Failure, Server, Tool, Toolkit, arrival::Invocation, assemble::assemble, clock::REAL,
};

/// The head of a notification with the token "t".
const HEAD: &str = r#"event: message
data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":"#;

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

/// A request of a legacy client.
struct Asked {
    token: Value,
    accept: &'static str,
    invocation: Invocation,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            token: json!("t"),
            accept: "application/json, text/event-stream",
            invocation: Invocation {
                streams: true,
                ..Invocation::default()
            },
        }
    }
}

impl Asked {
    async fn of(self, server: Router) -> Response {
        let params = json!({
            "name": "Long_Run", "_meta": {"progressToken": self.token},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = Request::post("/mcp")
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, self.accept)
            .extension(Arc::new(self.invocation));
        let request = request.body(Body::from(body.to_string())).unwrap();
        server.oneshot(request).await.unwrap()
    }
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
    let chunks = chunks_of(Asked::default().of(server).await).await;
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
    let params = params.iter();
    params
        .map(|(_, it)| it["progress"].as_f64().unwrap())
        .collect()
}

async fn json_of(response: Response) -> Value {
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
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
    let chunks = chunks_of(Asked::default().of(server).await).await;
    let (times, chunks): (Vec<_>, Vec<_>) = chunks.into_iter().unzip();
    assert_eq!(times, [0, 100, 200]);
    let first = format!("{HEAD}1.0,\"total\":3.0,\"message\":\"one\\n\\\"line\\\"\"}}}}\n\n");
    let second = format!("{HEAD}1.5}}}}\n\n");
    assert_eq!(chunks[..2], [first, second]);
    let response = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{";
    assert!(chunks[2].starts_with(response), "{}", chunks[2]);
    assert!(chunks[2].ends_with("}\n\n"), "{}", chunks[2]);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_a_string_or_an_integer() {
    let server = server(|cx| async move {
        cx.progress(1, None, "");
        ms(1).await;
    });
    for token in [json!("x"), json!(""), json!(0), json!(-1), json!(u64::MAX)] {
        let asked = Asked {
            token: token.clone(),
            ..Asked::default()
        };
        let chunks = chunks_of(asked.of(server.clone()).await).await;
        let sent = format!("\"progressToken\":{token},");
        assert!(chunks[0].1.contains(&sent), "{chunks:?}");
    }
    for token in [json!(null), json!(1.5), json!(true), json!([1]), json!({})] {
        let asked = Asked {
            token,
            ..Asked::default()
        };
        let answer = json_of(asked.of(server.clone()).await).await;
        assert_eq!(answer["result"]["structuredContent"]["result"], 7);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_or_a_source_without_streams_gets_json() {
    let server = server(|cx| async move {
        cx.progress(1, None, "");
        ms(30_000).await;
    });
    let accepts = [
        "application/json",
        "application/json, text/html",
        "application/json, text/event-stream-like",
    ];
    let accepts = accepts.map(|accept| Asked {
        accept,
        ..Asked::default()
    });
    let closed = Asked {
        invocation: Invocation::default(),
        ..Asked::default()
    };
    for asked in accepts.into_iter().chain([closed]) {
        let answer = json_of(asked.of(server.clone()).await).await;
        assert_eq!(answer["result"]["structuredContent"]["result"], 7);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_before_its_first_report_gets_json() {
    let quick = server(|_| ms(9_999));
    let answer = json_of(Asked::default().of(quick).await).await;
    assert_eq!(answer["result"]["structuredContent"]["result"], 7);
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
