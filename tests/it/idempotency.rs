//! One call, one effect: in memory, and on `DynamoDB` what depends on the store.

#[cfg(feature = "dynamodb")]
mod dynamodb;
mod equal;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_tools::{
    Failure, Server, Tool, Toolkit,
    idempotency::Idempotency,
    testing::{ExpectedResponse, LambdaFunction},
};
use serde_json::{Value, json};

use crate::support::post;

/// The timeout of tools that hang.
const SHORT: Duration = Duration::from_millis(400);

/// The number of effects that tools had.
type Effects = Arc<AtomicUsize>;

/// Returns a tool whose behaviour is chosen by its input.
fn tool(effects: &Effects, id: &'static str) -> Tool {
    let effects = Arc::clone(effects);
    let act = move |input: Value| {
        let nth = effects.fetch_add(1, Ordering::SeqCst);
        async move {
            match input["then"].as_str() {
                Some("retry") => return Err(Failure::new("later").retry()),
                Some("fail") => return Err(Failure::new("no")),
                Some("text") => return Ok(json!("done")),
                Some("block") => std::thread::sleep(Duration::from_secs(1)),
                Some("wait") => tokio::time::sleep(Duration::from_millis(300)).await,
                _ => {}
            }
            let value = input.get("value").cloned();
            Ok(value.unwrap_or_else(|| json!({"nth": nth})))
        }
    };
    let input = json!({"type": "object", "properties": {
        "then": {"type": "string", "description": "The behaviour."},
        "value": {"description": "The result."}}});
    let tool = Tool::dynamic(id, "Acts.", input, json!({}), act);
    tool.timeout(Duration::from_secs(10))
}

fn tools(effects: &Effects) -> [Tool; 6] {
    let tool = |id| tool(effects, id);
    [
        tool("Act.Do@1.0.0"),
        tool("Act.Short@1.0.0").timeout(SHORT),
        tool("Act.ShortOnce@1.0.0")
            .timeout(SHORT)
            .run_at_most_once(),
        tool("Act.Again@1.0.0").idempotent(),
        tool("Act.Secretly@1.0.0").secret("KEY"),
        tool("Act.Mail@1.0.0").authorization("google", ["mail"]),
    ]
}

/// A function and the number of its effects.
struct Fixture {
    function: LambdaFunction,
    effects: Effects,
}

fn is_replay(reply: &ExpectedResponse) -> bool {
    reply.headers.contains_key("idempotent-replay")
}

/// Returns the error of a call that was accepted.
fn error_of(reply: &ExpectedResponse) -> &Value {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.body["success"], false, "{reply:?}");
    &reply.body["error"]
}

impl Fixture {
    fn new(idempotency: &Idempotency) -> Self {
        Self::with(idempotency, &Effects::default())
    }

    fn with(idempotency: &Idempotency, effects: &Effects) -> Self {
        let server = Server::new(Toolkit::new(tools(effects)).unwrap());
        // Tools return their input, and one test needs an outcome too large to store.
        let server = server.max_request_size(usize::MAX);
        Self {
            function: LambdaFunction::new(server.idempotency(idempotency.clone())),
            effects: Arc::clone(effects),
        }
    }

    async fn send(&self, body: &Value) -> ExpectedResponse {
        post(&self.function, "/tools/call", &[], body).await
    }

    async fn call(&self, tool: &str, call_id: &str, input: Value) -> ExpectedResponse {
        let body = json!({"tool_id": tool, "call_id": call_id, "input": input});
        self.send(&body).await
    }

    fn effects(&self) -> usize {
        self.effects.load(Ordering::SeqCst)
    }
}

/// To the millisecond.
#[tokio::test]
async fn a_record_expires_after_the_configured_time() {
    let store = Idempotency::in_memory();
    let fixture = Fixture::new(&store.expire_after(Duration::from_mins(30)));
    let is_replay = async || is_replay(&fixture.call("Act.Do", "expiry", json!({})).await);
    assert!(!is_replay().await);
    let until_end = Duration::from_mins(30) - Duration::from_millis(1);
    fixture.function.advance(until_end);
    assert!(is_replay().await);
    fixture.function.advance(Duration::from_millis(1));
    assert!(!is_replay().await);
    assert_eq!(fixture.effects(), 2);
}

/// While a call runs, another one with its id is rejected at once, and a repetition does not wait
/// forever. `tests/interleavings` shows that only one of them runs.
#[tokio::test]
async fn a_repetition_of_a_running_call_waits_for_a_limited_time() {
    let store = Idempotency::in_memory();
    let fixture = Fixture::new(&store);
    let call = |id: &'static str, then: &str| fixture.call("Act.Do", id, json!({"then": then}));
    let impatient = store.wait_for(Duration::from_millis(50));
    let impatient = Fixture::with(&impatient, &fixture.effects);
    let (first, (other, late)) = tokio::join!(call("busy", "wait"), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let other = call("busy", "retry").await;
        let late = impatient.call("Act.Do", "busy", json!({"then": "wait"}));
        (other, late.await)
    });
    assert_eq!((first.status, other.status), (200, 400));
    let error = error_of(&late);
    assert_eq!(error["can_retry"], true);
    assert_eq!(error["retry_after_ms"], 1000);
    assert_eq!(fixture.effects(), 1);
}

#[tokio::test]
async fn calls_without_deduplication_run_each_time() {
    let fixture = Fixture::new(&Idempotency::in_memory());
    for body in [
        json!({"tool_id": "Act.Again", "call_id": "again", "input": {}}),
        json!({"tool_id": "Act.Do", "input": {}}),
    ] {
        for _ in 0..2 {
            assert!(!is_replay(&fixture.send(&body).await));
        }
    }
    assert_eq!(fixture.effects(), 4);
}

/// An id is not claimed by an input that is rejected, nor by a requirement that is missing.
#[tokio::test]
async fn a_rejected_call_leaves_its_id_to_another() {
    let fixture = Fixture::new(&Idempotency::in_memory());
    let secrets = json!({"secrets": [{"id": "KEY", "value": "v"}]});
    for (tool, status, field, wrong, right) in [
        ("Act.Do", 422, "input", json!({"then": 7}), json!({})),
        ("Act.Secretly", 400, "context", json!({}), secrets),
    ] {
        for (value, status) in [(wrong, status), (right, 200)] {
            let body = json!({"tool_id": tool, "call_id": "c", field: value});
            assert_eq!(fixture.send(&body).await.status, status, "{tool}");
        }
    }
    assert_eq!(fixture.effects(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_cannot_be_stopped_does_not_run_twice_at_a_time() {
    let fixture = Fixture::new(&Idempotency::in_memory().wait_for(Duration::ZERO));
    let call = async |tool| fixture.call(tool, "blocks", json!({"then": "block"})).await;
    for message in [
        "The tool did not finish in time",
        "This call is still running",
    ] {
        assert_eq!(error_of(&call("Act.Short").await)["message"], message);
    }
    assert_eq!(error_of(&call("Act.ShortOnce").await)["can_retry"], false);
    assert!(is_replay(&call("Act.ShortOnce").await));
    assert_eq!(fixture.effects(), 2);
}

/// A token that a call brings is a part of it. The events show the same of secrets, and that they are
/// none if an identified caller names the user.
#[tokio::test]
async fn a_call_with_another_token_is_another_call() {
    let fixture = Fixture::new(&Idempotency::in_memory());
    let call = async |token: &str| {
        let call = fixture.function.call("Act.Mail", json!({})).call_id("c");
        call.token("google", token).await
    };
    assert_eq!(call("one").await.value(), json!({"nth": 0}));
    assert_eq!(call("other").await.rejection().reason, "call_id_reused");
    assert_eq!(fixture.effects(), 1);
}
