//! One call, one effect: the same cases in memory and on DynamoDB.

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

#[cfg(feature = "dynamodb")]
use lambda_tools::idempotency::DynamoDb;
use lambda_tools::{
    ApiKeys, Caller, Context, Failure, Server, Tool, Toolkit, idempotency::Idempotency,
    secrets::Secrets, testing::LambdaFunction,
};
use serde_json::{Value, json};
#[cfg(feature = "dynamodb")]
use test_support::aws::{AwsProxy, Emulator};

#[cfg(feature = "dynamodb")]
use crate::aws;

/// The timeout of tools that hang.
const SHORT: Duration = Duration::from_millis(700);

/// The number of effects that tools had.
type Effects = Arc<AtomicUsize>;

/// Returns tools whose behaviour is chosen by their input.
fn tools(effects: &Effects) -> Vec<Tool> {
    let tool = |id: &'static str| {
        let effects = Arc::clone(effects);
        let act = move |input: Value, cx: Context| {
            let effects = Arc::clone(&effects);
            async move {
                effects.fetch_add(1, Ordering::SeqCst);
                let _ = cx;
                match input["then"].as_str() {
                    Some("fail") => Err(Failure::new("no").developer_message("d").prompt("p")),
                    Some("retry") => Err(Failure::new("later").retry()),
                    Some("panic") => panic!("on request"),
                    Some("hang") => std::future::pending().await,
                    Some("block") => {
                        std::thread::sleep(Duration::from_secs(2));
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
        // Tools return their input, and some tests need an outcome too large to store.
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

/// The stores under test: memory and, with its feature, DynamoDB.
struct Stores {
    #[cfg(feature = "dynamodb")]
    proxy: AwsProxy,
    #[cfg(feature = "dynamodb")]
    emulator: Emulator,
}

impl Stores {
    #[cfg(feature = "dynamodb")]
    async fn start() -> Self {
        let emulator = Emulator::start().await;
        let proxy = emulator.proxy().await;
        proxy.create_table("calls").await;
        Self { proxy, emulator }
    }

    #[cfg(not(feature = "dynamodb"))]
    async fn start() -> Self {
        Self {}
    }

    #[cfg(feature = "dynamodb")]
    fn dynamodb(&self) -> Idempotency {
        Idempotency::in_store(DynamoDb::new("calls").client(aws::dynamodb(&self.proxy)))
    }

    fn all(&self) -> Vec<(&'static str, Idempotency)> {
        vec![
            ("memory", Idempotency::in_memory()),
            #[cfg(feature = "dynamodb")]
            ("dynamodb", self.dynamodb()),
        ]
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_repeated_call_returns_the_same_bytes() {
    let stores = Stores::start().await;
    for (name, store) in stores.all() {
        let fixture = Fixture::new(&store);
        let values = [
            json!(null),
            json!(0),
            json!(false),
            json!(""),
            json!([]),
            json!({}),
            json!(0.1 + 0.2),
            json!({"b": 1, "a": ["é\u{0}\"", null]}),
            json!("text ".repeat(70_000)),
        ];
        for (i, value) in values.iter().enumerate() {
            let id = format!("value-{i}");
            let input = json!({"value": value});
            let first = fixture.call("Act.Do", &id, input.clone()).await;
            assert_eq!(first.json()["value"], *value);
            assert!(!first.is_replay);
            for _ in 0..2 {
                let again = fixture.call("Act.Do", &id, input.clone()).await;
                assert!(again.is_replay, "{name}");
                assert_eq!(again.body, first.body);
            }
            assert_eq!(fixture.effects(), i + 1, "{name}");
        }
        let first = fixture
            .call("Act.Do", "fail", json!({"then": "fail"}))
            .await;
        let again = fixture
            .call("Act.Do", "fail", json!({"then": "fail"}))
            .await;
        assert_eq!(again.body, first.body);
        assert!(again.is_replay);
        assert_eq!(again.error()["additional_prompt_content"], "p");
        assert_eq!(fixture.effects(), values.len() + 1);
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_call_that_may_be_retried_runs_again() {
    let stores = Stores::start().await;
    for (name, store) in stores.all() {
        let fixture = Fixture::new(&store);
        let mut effects = 0;
        for (tool, then, runs) in [
            ("Act.Do", "retry", 3),
            ("Act.Do", "panic", 3),
            ("Act.Short", "hang", 3),
            ("Act.Once", "retry", 3),
            ("Act.Once", "panic", 1),
            ("Act.ShortOnce", "hang", 1),
        ] {
            let id = format!("nothing-{tool}-{then}");
            let mut replies = Vec::new();
            for _ in 0..3 {
                replies.push(fixture.call(tool, &id, json!({"then": then})).await);
            }
            effects += runs;
            assert_eq!(fixture.effects(), effects, "{name} {tool} {then}");
            let is_replay = runs == 1;
            assert_eq!(replies[2].is_replay, is_replay, "{name} {tool} {then}");
            let error = replies[2].error();
            if is_replay {
                assert_eq!(replies[2].body, replies[0].body);
                assert_eq!(error["can_retry"], false, "{error}");
                assert!(error["additional_prompt_content"].is_string(), "{error}");
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn calls_without_deduplication_run_each_time() {
    let stores = Stores::start().await;
    for (name, store) in stores.all() {
        let fixture = Fixture::new(&store);
        for _ in 0..2 {
            let reply = fixture.call("Act.Again", "again", json!({})).await;
            assert!(!reply.is_replay);
            let without_id = json!({"tool_id": "Act.Do", "input": {}});
            assert!(
                !fixture
                    .send("key-a-0123456789", &without_id)
                    .await
                    .is_replay
            );
        }
        assert_eq!(fixture.effects(), 4, "{name}");
        // A rejected input or a missing requirement does not claim the id.
        let mut input = json!({"tool_id": "Act.Do", "call_id": "input", "input": {"then": 7}});
        assert_eq!(fixture.send("key-a-0123456789", &input).await.status, 422);
        input["input"] = json!({});
        assert_eq!(fixture.send("key-a-0123456789", &input).await.status, 200);
        let unmet = json!({"tool_id": "Act.Secretly", "call_id": "unmet"});
        assert_eq!(fixture.send("key-a-0123456789", &unmet).await.status, 400);
        let mut met = unmet;
        met["context"] = json!({"secrets": [{"id": "KEY", "value": "v"}]});
        assert_eq!(fixture.send("key-a-0123456789", &met).await.status, 200);
        assert_eq!(fixture.effects(), 6, "{name}");
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn reusing_an_id_for_another_call_is_rejected() {
    let stores = Stores::start().await;
    for (name, store) in stores.all() {
        let fixture = Fixture::new(&store);
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
            assert_eq!(reply.status, 400, "{name} {field}");
            assert_eq!(
                reply.json()["message"],
                "This call_id belongs to another call"
            );
        }
        assert_eq!(fixture.effects(), 1);
        let again = fixture.send("key-a-0123456789", &call).await;
        assert_eq!(
            (again.is_replay, again.body),
            (true, first.body),
            "nothing is overwritten"
        );
        // Ids are separate for each caller and each tool.
        let mut other_tool = call.clone();
        other_tool["tool_id"] = json!("Act.Once");
        assert!(
            !fixture
                .send("key-a-0123456789", &other_tool)
                .await
                .is_replay
        );
        assert!(!fixture.send("key-b-0123456789", &call).await.is_replay);
        assert_eq!(fixture.effects(), 3, "{name}");
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn an_outcome_is_replayed_in_the_dialect_of_the_request() {
    let stores = Stores::start().await;
    for (name, store) in stores.all() {
        let fixture = Fixture::new(&store);
        let call = json!({"tool_id": "Act.Do@2.0.0", "call_id": "dialect", "input": {"value": 1}});
        let first = fixture.send("key-a-0123456789", &call).await.json();
        // Without a version, the id means the same, newest version.
        let newest = json!({"tool_id": "Act.Do", "call_id": "dialect", "input": {"value": 1}});
        for schema in ["otc://1.0", "urn:oxp:1.0"] {
            let body = json!({"$schema": schema, "request": newest});
            let reply = fixture.send("key-a-0123456789", &body).await;
            assert!(reply.is_replay, "{name} {schema}");
            assert_eq!(reply.json(), json!({"$schema": schema, "result": first}));
        }
        assert_eq!(fixture.effects(), 1);
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_record_expires_after_the_configured_time() {
    let stores = Stores::start().await;
    for (name, store) in stores.all() {
        let fixture = Fixture::new(&store.expire_after(Duration::from_mins(30)));
        let call = async || fixture.call("Act.Do", "expiry", json!({})).await.is_replay;
        assert!(!call().await);
        fixture
            .function
            .advance(Duration::from_millis(30 * 60 * 1000 - 1));
        assert!(call().await, "{name}");
        fixture.function.advance(Duration::from_millis(1));
        assert!(!call().await, "{name}");
        assert!(call().await, "{name}");
        assert_eq!(fixture.effects(), 2);
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn concurrent_repeats_of_a_call_run_once() {
    let stores = Stores::start().await;
    for (name, store) in stores.all() {
        let fixture = Fixture::new(&store);
        let wait = async || {
            fixture
                .call("Act.Do", "at-once", json!({"then": "wait"}))
                .await
        };
        let (one, two, three) = tokio::join!(wait(), wait(), wait());
        assert_eq!(fixture.effects(), 1, "{name}");
        assert_eq!(one.json(), two.json());
        assert_eq!(one.json(), three.json());
        let replays = [&one, &two, &three]
            .iter()
            .filter(|it| it.is_replay)
            .count();
        assert_eq!(replays, 2, "{name}");

        // A retryable failure releases the claim for the next call.
        let retry = async || {
            fixture
                .call("Act.Do", "released", json!({"then": "wait-retry"}))
                .await
        };
        let (one, two) = tokio::join!(retry(), retry());
        assert_eq!(fixture.effects(), 3, "{name}");
        assert_eq!((one.is_replay, two.is_replay), (false, false));

        // Another call with the same id is rejected at once.
        let (first, other) = tokio::join!(
            fixture.call("Act.Do", "busy", json!({"then": "wait"})),
            async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                fixture
                    .call("Act.Do", "busy", json!({"then": "fail"}))
                    .await
            }
        );
        assert_eq!((first.status, other.status), (200, 400), "{name}");
        assert_eq!(fixture.effects(), 4, "{name}");

        // The wait for the other call is limited.
        let impatient = store.clone().wait_for(Duration::from_millis(100));
        let impatient = Fixture::with(&impatient, &fixture.effects);
        let late = async || {
            impatient
                .call("Act.Do", "late", json!({"then": "wait"}))
                .await
        };
        let early = fixture.call("Act.Do", "late", json!({"then": "wait"}));
        let (_, late) = tokio::join!(early, async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            late().await
        });
        let error = late.error();
        assert_eq!(error["can_retry"], true);
        assert_eq!(error["retry_after_ms"], 1000);
        assert!(!late.is_replay);
        assert_eq!(fixture.effects(), 5, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto; run tests/all"]
async fn a_tool_that_cannot_be_stopped_does_not_run_twice_at_a_time() {
    let stores = Stores::start().await;
    for (name, store) in stores.all() {
        let fixture = Fixture::new(&store.wait_for(Duration::ZERO));
        let call = async |tool| fixture.call(tool, "blocks", json!({"then": "block"})).await;
        let error = call("Act.Short").await.error();
        assert_eq!(
            error["message"], "The tool did not finish in time",
            "{name}"
        );
        let error = call("Act.Short").await.error();
        assert_eq!(error["message"], "This call is still running", "{name}");
        let error = call("Act.ShortOnce").await.error();
        assert_eq!(error["can_retry"], false, "{name}");
        assert!(call("Act.ShortOnce").await.is_replay, "{name}");
        assert_eq!(fixture.effects(), 2, "{name}");
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_call_whose_outcome_is_too_large_to_store_does_not_run_again() {
    let stores = Stores::start().await;
    for ((name, store), size) in stores.all().into_iter().zip([4_100_000, 410_000]) {
        let fixture = Fixture::new(&store);
        // The outcome fits into memory, but not into a DynamoDB item.
        let input = json!({"value": "x".repeat(size)});
        let first = fixture.call("Act.Do", "large", input.clone()).await;
        assert_eq!(
            first.json()["value"],
            input["value"],
            "{name}: the caller gets it"
        );
        let again = fixture.call("Act.Do", "large", input).await;
        assert_eq!((again.is_replay, fixture.effects()), (true, 1), "{name}");
        if name == "memory" {
            assert_eq!(again.body, first.body);
            continue;
        }
        let error = again.error();
        assert_eq!(error["can_retry"], false);
        assert!(
            error["message"].as_str().unwrap().contains("has run"),
            "{error}"
        );
    }
}
/// The credentials that a call brings are a part of it, unless an identified caller names the user.
#[tokio::test]
async fn a_call_with_other_credentials_is_another_call() {
    let key = || Caller::ApiKey { id: "A".into() };
    for (caller, users, tokens, keys, is_same) in [
        (Caller::Anyone, ["u", "u"], ["t", "t"], ["k", "k"], true),
        (
            Caller::Anyone,
            ["u", "u"],
            ["t", "other"],
            ["k", "k"],
            false,
        ),
        (
            Caller::Anyone,
            ["u", "u"],
            ["t", "t"],
            ["k", "other"],
            false,
        ),
        (key(), ["u", "u"], ["t", "other"], ["k", "other"], true),
        (key(), ["u", "v"], ["t", "t"], ["k", "k"], false),
        (key(), ["", ""], ["t", "other"], ["k", "k"], false),
        (key(), ["", ""], ["t", "t"], ["k", "other"], false),
        (key(), ["", ""], ["t", "t"], ["k", "k"], true),
    ] {
        let effects = Effects::default();
        let counter = Arc::clone(&effects);
        let act = move |_: Value| {
            let effect = counter.fetch_add(1, Ordering::SeqCst);
            async move { Ok::<_, Failure>(json!(effect)) }
        };
        let tool = Tool::dynamic(
            "Act.Open@1.0.0",
            "Acts.",
            json!({"type": "object"}),
            json!({}),
            act,
        );
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
