//! One call, one effect: in memory, and what depends on the store on `DynamoDB` too.

#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "dynamodb")]
mod test_table;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_tools::{
    ApiKeys, Caller, Failure, Server, Tool, Toolkit, idempotency::Idempotency, secrets::Secrets,
    testing::LambdaFunction,
};
use serde_json::{Value, json};

/// The timeout of tools that hang.
const SHORT: Duration = Duration::from_millis(400);

/// The number of effects that tools had.
type Effects = Arc<AtomicUsize>;

/// Returns tools whose behaviour is chosen by their input.
fn tools(effects: &Effects) -> Vec<Tool> {
    let tool = |id: &'static str| {
        let effects = Arc::clone(effects);
        let act = move |input: Value| {
            let effects = Arc::clone(&effects);
            async move {
                effects.fetch_add(1, Ordering::SeqCst);
                match input["then"].as_str() {
                    Some("fail") => Err(Failure::new("no").developer_message("d").prompt("p")),
                    Some("retry") => Err(Failure::new("later").retry()),
                    Some("panic") => panic!("on request"),
                    Some("hang") => std::future::pending().await,
                    Some("block") => {
                        std::thread::sleep(Duration::from_secs(1));
                        Ok(json!("blocked"))
                    }
                    Some("wait") => {
                        tokio::time::sleep(Duration::from_millis(300)).await;
                        Ok(json!("waited"))
                    }
                    Some("wait-retry") => {
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        Err(Failure::new("later").retry())
                    }
                    _ => Ok(input["value"].clone()),
                }
            }
        };
        let input = json!({"type": "object", "properties": {
            "then": {"type": "string", "description": "The behaviour."},
            "value": {"description": "The result."}}});
        let tool = Tool::dynamic(id, "Acts.", input, json!({}), act);
        tool.timeout(Duration::from_secs(10))
    };
    vec![
        tool("Act.Do@1.0.0"),
        tool("Act.Do@2.0.0"),
        tool("Act.Once@1.0.0").run_at_most_once(),
        tool("Act.Short@1.0.0").timeout(SHORT),
        tool("Act.ShortOnce@1.0.0")
            .timeout(SHORT)
            .run_at_most_once(),
        tool("Act.Again@1.0.0").idempotent(),
        tool("Act.Secretly@1.0.0").secret("KEY"),
    ]
}

/// A function and the number of its effects.
struct Fixture {
    function: LambdaFunction,
    effects: Effects,
}

#[derive(Debug, PartialEq)]
struct Reply {
    status: u64,
    is_replay: bool,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn error(&self) -> Value {
        let body = self.json();
        assert_eq!(
            (self.status, &body["success"]),
            (200, &json!(false)),
            "{body}"
        );
        body["error"].clone()
    }
}

impl Fixture {
    fn new(idempotency: &Idempotency) -> Self {
        let effects = Effects::default();
        Self::with(idempotency, &effects)
    }

    fn with(idempotency: &Idempotency, effects: &Effects) -> Self {
        let server = Server::new(Toolkit::new(tools(effects)).unwrap());
        let keys = Secrets::fixed([("A", "key-a-0123456789"), ("B", "key-b-0123456789")]);
        let server = server.auth(ApiKeys::with_ids(["A", "B"])).secrets(keys);
        // Tools return their input, and one test needs an outcome too large to store.
        let server = server.max_request_size(usize::MAX);
        Self {
            function: LambdaFunction::new(server.idempotency(idempotency.clone())),
            effects: Arc::clone(effects),
        }
    }

    async fn send(&self, key: &str, body: &Value) -> Reply {
        let event = json!({
            "version": "2.0", "rawPath": "/tools/call", "rawQueryString": "",
            "headers": {"oxp-api-key": key},
            "requestContext": {"stage": "$default", "timeEpoch": 0,
                               "http": {"method": "POST", "path": "/tools/call"}},
            "body": body.to_string(), "isBase64Encoded": false,
        });
        let response = self.function.invoke(&event.to_string()).await.unwrap();
        Reply {
            status: response["statusCode"].as_u64().unwrap(),
            is_replay: response["headers"]["idempotent-replay"] == "true",
            body: response["body"].as_str().unwrap().to_owned(),
        }
    }

    async fn call(&self, tool: &str, call_id: &str, input: Value) -> Reply {
        let body = json!({"tool_id": tool, "call_id": call_id, "input": input});
        self.send("key-a-0123456789", &body).await
    }

    fn effects(&self) -> usize {
        self.effects.load(Ordering::SeqCst)
    }
}

/// Repeated calls get the first outcome, unless it says that the call may be retried.
async fn assert_replays(store: &Idempotency) {
    let fixture = Fixture::new(store);
    for (id, input) in [
        ("null", json!({"value": null})),
        (
            "object",
            json!({"value": {"b": 1, "a": ["é\u{0}\"", null]}}),
        ),
        ("large", json!({"value": "text ".repeat(70_000)})),
        ("failure", json!({"then": "fail"})),
    ] {
        let before = fixture.effects();
        let first = fixture.call("Act.Do", id, input.clone()).await;
        assert!(!first.is_replay, "{id}");
        for _ in 0..2 {
            let again = fixture.call("Act.Do", id, input.clone()).await;
            assert!(again.is_replay, "{id}");
            assert_eq!(again.body, first.body);
        }
        assert_eq!(fixture.effects(), before + 1, "{id}");
    }
    for (tool, then, runs) in [
        ("Act.Do", "retry", 2),
        ("Act.Do", "panic", 2),
        ("Act.Short", "hang", 2),
        ("Act.Once", "retry", 2),
        ("Act.Once", "panic", 1),
        ("Act.ShortOnce", "hang", 1),
    ] {
        let before = fixture.effects();
        let id = format!("{tool}-{then}");
        let first = fixture.call(tool, &id, json!({"then": then})).await;
        let again = fixture.call(tool, &id, json!({"then": then})).await;
        assert_eq!(fixture.effects(), before + runs, "{tool} {then}");
        assert_eq!(again.is_replay, runs == 1, "{tool} {then}");
        if again.is_replay {
            assert_eq!(again.body, first.body);
            assert_eq!(again.error()["can_retry"], false, "{tool} {then}");
        }
    }
}

/// A record is kept for the configured time, to the millisecond.
async fn assert_expires(store: Idempotency) {
    let fixture = Fixture::new(&store.expire_after(Duration::from_mins(30)));
    let is_replay = async || fixture.call("Act.Do", "expiry", json!({})).await.is_replay;
    assert!(!is_replay().await);
    let until_end = Duration::from_mins(30) - Duration::from_millis(1);
    fixture.function.advance(until_end);
    assert!(is_replay().await);
    fixture.function.advance(Duration::from_millis(1));
    assert!(!is_replay().await);
    assert_eq!(fixture.effects(), 2);
}

/// Of calls at the same time, one runs and the others wait for its outcome.
async fn assert_concurrent_repeats_run_once(store: &Idempotency) {
    let fixture = Fixture::new(store);
    let call = |id: &'static str, then: &str| fixture.call("Act.Do", id, json!({"then": then}));
    let (one, two, three) = tokio::join!(
        call("at-once", "wait"),
        call("at-once", "wait"),
        call("at-once", "wait")
    );
    assert_eq!(fixture.effects(), 1);
    assert_eq!([one.json(), two.json()], [two.json(), three.json()]);
    let replays = [&one, &two, &three].map(|it| usize::from(it.is_replay));
    assert_eq!(replays.iter().sum::<usize>(), 2);

    // A retryable failure releases the claim for the next call.
    let (one, two) = tokio::join!(
        call("released", "wait-retry"),
        call("released", "wait-retry")
    );
    assert_eq!((one.is_replay, two.is_replay), (false, false));
    assert_eq!(fixture.effects(), 3);

    // While a call runs, another one with its id is rejected at once, and the wait is limited.
    let impatient = store.clone().wait_for(Duration::from_millis(50));
    let impatient = Fixture::with(&impatient, &fixture.effects);
    let (first, (other, late)) = tokio::join!(call("busy", "wait"), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let other = call("busy", "fail").await;
        let late = impatient.call("Act.Do", "busy", json!({"then": "wait"}));
        (other, late.await)
    });
    assert_eq!((first.status, other.status), (200, 400));
    let error = late.error();
    assert_eq!(error["can_retry"], true);
    assert_eq!(error["retry_after_ms"], 1000);
    assert_eq!(fixture.effects(), 4);
}

#[tokio::test]
async fn a_repeated_call_gets_the_same_bytes() {
    assert_replays(&Idempotency::in_memory()).await;
}

#[tokio::test]
async fn a_record_expires_after_the_configured_time() {
    assert_expires(Idempotency::in_memory()).await;
}

#[tokio::test]
async fn concurrent_repeats_of_a_call_run_once() {
    assert_concurrent_repeats_run_once(&Idempotency::in_memory()).await;
}

#[tokio::test]
async fn calls_without_deduplication_run_each_time() {
    let fixture = Fixture::new(&Idempotency::in_memory());
    let send = async |body: Value| fixture.send("key-a-0123456789", &body).await;
    for _ in 0..2 {
        let reply = fixture.call("Act.Again", "again", json!({})).await;
        assert!(!reply.is_replay);
        let without_id = json!({"tool_id": "Act.Do", "input": {}});
        assert!(!send(without_id).await.is_replay);
    }
    assert_eq!(fixture.effects(), 4);
    // A rejected input or a missing requirement does not claim the id.
    let mut call = json!({"tool_id": "Act.Do", "call_id": "input", "input": {"then": 7}});
    assert_eq!(send(call.clone()).await.status, 422);
    call["input"] = json!({});
    assert_eq!(send(call).await.status, 200);
    let mut call = json!({"tool_id": "Act.Secretly", "call_id": "unmet"});
    assert_eq!(send(call.clone()).await.status, 400);
    call["context"] = json!({"secrets": [{"id": "KEY", "value": "v"}]});
    assert_eq!(send(call).await.status, 200);
    assert_eq!(fixture.effects(), 6);
}

#[tokio::test]
async fn an_id_belongs_to_one_call_of_each_caller_and_tool() {
    let fixture = Fixture::new(&Idempotency::in_memory());
    let call = json!({"tool_id": "Act.Do", "call_id": "other", "input": {"value": 1},
                      "context": {"user_id": "u"}});
    let first = fixture.send("key-a-0123456789", &call).await;
    for (field, value) in [
        ("input", json!({"value": 2})),
        ("tool_id", json!("Act.Do@1.0.0")),
        ("context", json!({"user_id": "v"})),
        ("context", json!({})),
    ] {
        let mut other = call.clone();
        other[field] = value;
        let reply = fixture.send("key-a-0123456789", &other).await;
        assert_eq!(reply.status, 400, "{field}");
        let message = "This call_id belongs to another call";
        assert_eq!(reply.json()["message"], message);
    }
    assert_eq!(fixture.effects(), 1);
    let again = fixture.send("key-a-0123456789", &call).await;
    assert_eq!((again.is_replay, again.body), (true, first.body));
    let mut other_tool = call.clone();
    other_tool["tool_id"] = json!("Act.Once");
    for (key, call) in [
        ("key-a-0123456789", &other_tool),
        ("key-b-0123456789", &call),
    ] {
        assert!(!fixture.send(key, call).await.is_replay, "{key}");
    }
    assert_eq!(fixture.effects(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_cannot_be_stopped_does_not_run_twice_at_a_time() {
    let fixture = Fixture::new(&Idempotency::in_memory().wait_for(Duration::ZERO));
    let call = async |tool| fixture.call(tool, "blocks", json!({"then": "block"})).await;
    let error = call("Act.Short").await.error();
    assert_eq!(error["message"], "The tool did not finish in time");
    let error = call("Act.Short").await.error();
    assert_eq!(error["message"], "This call is still running");
    let error = call("Act.ShortOnce").await.error();
    assert_eq!(error["can_retry"], false);
    assert!(call("Act.ShortOnce").await.is_replay);
    assert_eq!(fixture.effects(), 2);
}

/// The credentials that a call brings are a part of it, unless an identified caller names the user.
#[tokio::test]
async fn a_call_with_other_credentials_is_another_call() {
    let key = || Caller::ApiKey { id: "A".into() };
    let anyone = || Caller::Anyone;
    for (caller, users, tokens, keys, is_same) in [
        (anyone(), ["u", "u"], ["t", "t"], ["k", "k"], true),
        (anyone(), ["u", "u"], ["t", "x"], ["k", "k"], false),
        (anyone(), ["u", "u"], ["t", "t"], ["k", "x"], false),
        (key(), ["u", "u"], ["t", "x"], ["k", "x"], true),
        (key(), ["", ""], ["t", "x"], ["k", "k"], false),
        (key(), ["", ""], ["t", "t"], ["k", "x"], false),
        (key(), ["", ""], ["t", "t"], ["k", "k"], true),
    ] {
        let effects = Effects::default();
        let counter = Arc::clone(&effects);
        let act = move |_: Value| {
            let effect = counter.fetch_add(1, Ordering::SeqCst);
            async move { Ok::<_, Failure>(json!(effect)) }
        };
        let input = json!({"type": "object"});
        let tool = Tool::dynamic("Act.Open@1.0.0", "Acts.", input, json!({}), act);
        let tool = tool.authorization("google", ["mail"]).secret("KEY");
        let server = Server::new(Toolkit::new([tool]).unwrap());
        let function = LambdaFunction::new(server.idempotency(Idempotency::in_memory()));
        let call = async |at: usize| {
            let call = function.call("Act.Open", json!({})).call_id("c");
            let call = call.caller(caller.clone()).token("google", tokens[at]);
            let call = call.secret("KEY", keys[at]);
            match users[at] {
                "" => call.await,
                user => call.user_id(user).await,
            }
        };
        assert_eq!(call(0).await.value(), 0);
        let second = call(1).await;
        if is_same {
            assert_eq!(second.value(), 0, "{caller:?} {tokens:?} {keys:?}");
        } else {
            assert_eq!(second.rejection().reason, "call_id_reused", "{caller:?}");
        }
        assert_eq!(effects.load(Ordering::SeqCst), 1);
    }
}
