//! Equal calls without an id, which are one call within a time.

use futures_util::future::join_all;
use lambda_tools::{ApiKeys, Auth, secrets::Secrets};

use super::*;
use crate::support::mcp_call;

const WINDOW: Duration = Duration::from_mins(1);

impl Fixture {
    /// Returns a function whose callers have keys, and whose tools run equal calls once.
    fn with_window() -> Self {
        Self::with_window_and(ApiKeys::with_ids(["A", "B"]))
    }

    fn with_window_and(auth: impl Into<Auth>) -> Self {
        let effects = Effects::default();
        let tool = |id| tool(&effects, id).once_within(WINDOW);
        let toolkit = Toolkit::new([tool("Act.Do@1.0.0"), tool("Act.Do@2.0.0")]);
        let server = Server::new(toolkit.unwrap())
            .auth(auth)
            .secrets(Secrets::fixed([("A", A), ("B", B)]))
            .idempotency(Idempotency::in_memory().wait_for(Duration::from_millis(50)));
        Self {
            function: LambdaFunction::new(server),
            effects,
        }
    }

    async fn send_as(&self, key: &str, body: &Value) -> ExpectedResponse {
        post(&self.function, "/tools/call", &[("oxp-api-key", key)], body).await
    }
}

const A: &str = "the-key-of-caller-a";
const B: &str = "the-key-of-caller-b";

fn body(then: &str) -> Value {
    json!({"tool_id": "Act.Do", "input": {"then": then}})
}

/// To the millisecond.
#[tokio::test]
async fn equal_calls_within_the_time_are_one() {
    let fixture = Fixture::with_window();
    let call = async || is_replay(&fixture.send_as(A, &body("run")).await);
    assert!(!call().await);
    fixture.function.advance(Duration::from_millis(59_999));
    assert!(call().await);
    // A replay does not make the time longer.
    fixture.function.advance(Duration::from_millis(1));
    assert!(!call().await);
    assert_eq!(fixture.effects(), 2);
}

#[tokio::test]
async fn calls_that_differ_run() {
    let fixture = Fixture::with_window();
    let first = body("run");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = first.clone();
        change(&mut body);
        body
    };
    let others = [
        first.clone(),
        with(&|it| it["input"] = json!({})),
        with(&|it| it["tool_id"] = "Act.Do@1.0.0".into()),
        with(&|it| it["context"]["user_id"] = "alice".into()),
        // Neither of two calls with ids is an equal call, and neither meets one.
        with(&|it| it["call_id"] = "1".into()),
        with(&|it| it["call_id"] = "2".into()),
    ];
    let count = others.len();
    for round in 0..2 {
        for (index, body) in others.iter().enumerate() {
            let reply = fixture.send_as(A, body).await;
            assert_eq!(reply.status, 200, "{reply:?}");
            assert_eq!(reply.body["value"]["nth"], index, "{round} {body}");
            assert_eq!(is_replay(&reply), round > 0, "{body}");
        }
        assert_eq!(fixture.effects(), count);
    }
    assert_eq!(fixture.send_as(B, &first).await.body["value"]["nth"], count);
    // The same tool by its version.
    let by_version = with(&|it| it["tool_id"] = "Act.Do@2.0.0".into());
    assert!(is_replay(&fixture.send_as(A, &by_version).await));
}

/// However short calls with an id wait: whoever sends none would not come back.
#[tokio::test]
async fn calls_in_flight_share_one_run() {
    let fixture = Fixture::with_window();
    let body = body("wait");
    let replies = join_all((0..64).map(|_| fixture.send_as(A, &body))).await;
    assert_eq!(fixture.effects(), 1);
    for reply in &replies {
        assert_eq!(reply.body["value"]["nth"], 0, "{reply:?}");
    }
    assert_eq!(replies.iter().filter(|it| is_replay(it)).count(), 63);
}

/// Models read `content`; programs read the rest, which is as it was.
#[tokio::test]
async fn a_model_is_told_that_nothing_was_done_again() {
    let fixture = Fixture::with_window_and(Auth::none());
    let call = async |then: &str, meta: Value| {
        let params = json!({"arguments": {"then": then}, "_meta": meta});
        mcp_call(&fixture.function, "Act_Do", params).await["result"].take()
    };
    for (then, wait, ago) in [
        ("run", 12, "12 seconds"),
        ("text", 1, "1 second"),
        ("fail", 0, "0 seconds"),
    ] {
        let first = call(then, json!({})).await;
        fixture.function.advance(Duration::from_secs(wait));
        let mut second = call(then, json!({})).await;
        let note = second["content"].as_array_mut().unwrap().remove(0);
        let text = format!(
            "The same call was made {ago} ago; this is its result, and nothing was done again."
        );
        assert_eq!(note, json!({"type": "text", "text": text}));
        assert_eq!(second["_meta"]["lambda-tools/replay"], true, "{second}");
        for field in ["content", "structuredContent", "isError"] {
            assert_eq!(first[field], second[field], "{then}");
        }
    }
    // With an id, nothing is said: whoever sent it knows.
    let id = json!({"lambda-tools/call-id": "1"});
    call("run", id.clone()).await;
    let again = call("run", id).await;
    assert_eq!(again["_meta"]["lambda-tools/replay"], true, "{again}");
    assert_eq!(again["content"].as_array().unwrap().len(), 1, "{again}");
}
