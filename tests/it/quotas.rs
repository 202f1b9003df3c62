//! Quotas: what is counted, how exactly, and what happens without the store. `events/quotas` has the
//! responses in each protocol.

#[cfg(feature = "dynamodb")]
mod dynamodb;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use lambda_tools::{
    ApiKeys, Failure, Server, StoreError, Tool, Toolkit,
    idempotency::Idempotency,
    quotas::Quota,
    secrets::Secrets,
    store::{PutOutcome, Record, Store, StoreFuture, Write},
    testing::LambdaFunction,
};
use serde_json::{Value, json};

/// A function, and the number of its tools' effects.
struct Fixture {
    function: LambdaFunction,
    effects: Arc<AtomicUsize>,
}

/// Who calls what.
#[derive(Clone, Copy, Default)]
struct Sent<'a> {
    key: Option<&'a str>,
    user: Option<&'a str>,
    tool: Option<&'a str>,
    call_id: Option<&'a str>,
}

struct Reply {
    status: u64,
    headers: Value,
    body: Value,
}

impl Reply {
    fn is_exceeded(&self) -> bool {
        self.body["message"] == "Too many calls"
    }
}

impl Fixture {
    fn new(quotas: &[Quota], idempotency: Idempotency) -> Self {
        let effects = Arc::new(AtomicUsize::new(0));
        let server = server(quotas, idempotency, &effects);
        let function = LambdaFunction::new(server);
        Self { function, effects }
    }

    /// Creates a function whose clock shows this time.
    fn at(now: SystemTime, quotas: &[Quota], idempotency: Idempotency) -> Self {
        let effects = Arc::new(AtomicUsize::new(0));
        let server = server(quotas, idempotency, &effects);
        let started = std::time::Instant::now();
        let function = LambdaFunction::with_clocks(server, move || now, move || started);
        Self { function, effects }
    }

    async fn call(&self, sent: Sent<'_>) -> Reply {
        let mut body = json!({"tool_id": sent.tool.unwrap_or("A.Act"), "input": {}});
        if let Some(id) = sent.call_id {
            body["call_id"] = json!(id);
        }
        if let Some(user) = sent.user {
            body["context"] = json!({"user_id": user});
        }
        let event = json!({
            "version": "2.0", "rawPath": "/tools/call", "rawQueryString": "",
            "headers": {"oxp-api-key": sent.key.unwrap_or("key-a-0123456789")},
            "requestContext": {"stage": "$default", "timeEpoch": 0,
                               "http": {"method": "POST", "path": "/tools/call"}},
            "body": body.to_string(), "isBase64Encoded": false,
        });
        let response = self.function.invoke(&event.to_string()).await.unwrap();
        let body = response["body"].as_str().unwrap();
        Reply {
            status: response["statusCode"].as_u64().unwrap(),
            headers: response["headers"].clone(),
            body: serde_json::from_str(body).unwrap(),
        }
    }

    /// Sends a call, and returns true if its quota was not used up.
    async fn runs(&self, sent: Sent<'_>) -> bool {
        let before = self.effects();
        let reply = self.call(sent).await;
        let has_run = self.effects() > before;
        assert_eq!(has_run, !reply.is_exceeded(), "{}", reply.body);
        has_run
    }

    fn effects(&self) -> usize {
        self.effects.load(Ordering::SeqCst)
    }
}

fn server(quotas: &[Quota], idempotency: Idempotency, effects: &Arc<AtomicUsize>) -> Server {
    let tool = |id: &'static str| {
        let effects = Arc::clone(effects);
        let act = move |_: Value| {
            effects.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, Failure>(json!(null)) }
        };
        Tool::dynamic(id, "Acts.", json!({"type": "object"}), json!({}), act)
    };
    let tools = ["A.Act@1.0.0", "A.Act@2.0.0", "A.Other@1.0.0"].map(tool);
    let keys = Secrets::fixed([("A", "key-a-0123456789"), ("B", "key-b-0123456789")]);
    let server = Server::new(Toolkit::new(tools).unwrap())
        .auth(ApiKeys::with_ids(["A", "B"]))
        .secrets(keys)
        .idempotency(idempotency);
    quotas.iter().cloned().fold(server, Server::quota)
}

/// A store that counts its requests, and does not count in one request.
#[derive(Clone, Default)]
struct Plain(Arc<Requests>);

#[derive(Default)]
struct Requests {
    records: Mutex<std::collections::HashMap<String, Record>>,
    names: Mutex<Vec<&'static str>>,
    is_down: std::sync::atomic::AtomicBool,
    is_denied: std::sync::atomic::AtomicBool,
}

impl Plain {
    fn note(&self, name: &'static str) -> Result<(), StoreError> {
        self.0.names.lock().unwrap().push(name);
        if self.0.is_down.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("it is down"));
        }
        if self.0.is_denied.load(Ordering::SeqCst) {
            return Err(StoreError::denied("allow it"));
        }
        Ok(())
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.names.lock().unwrap())
    }
}

impl Store for Plain {
    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Record>> {
        let noted = self.note("get");
        let found = self.0.records.lock().unwrap().get(id).cloned();
        Box::pin(async move {
            // Other calls come between a read and the write that follows.
            tokio::task::yield_now().await;
            noted.map(|()| found)
        })
    }

    fn put<'a>(&'a self, write: Write<'a>) -> StoreFuture<'a, PutOutcome> {
        let noted = self.note("put");
        let mut records = self.0.records.lock().unwrap();
        let current = records.get(write.id).cloned();
        let outcome = if noted.is_ok() && write.may_replace(current.as_ref()) {
            records.insert(write.id.to_owned(), write.record.clone());
            PutOutcome::Written
        } else {
            PutOutcome::Conflict(current)
        };
        Box::pin(std::future::ready(noted.map(|()| outcome)))
    }

    fn delete<'a>(&'a self, id: &'a str, version: u64) -> StoreFuture<'a, ()> {
        let noted = self.note("delete");
        let mut records = self.0.records.lock().unwrap();
        if records.get(id).is_some_and(|it| it.version == version) {
            records.remove(id);
        }
        Box::pin(std::future::ready(noted))
    }
}

#[tokio::test]
async fn a_quota_counts_by_what_it_says() {
    let (a, b) = (
        Sent::default(),
        Sent {
            key: Some("key-b-0123456789"),
            ..Sent::default()
        },
    );
    let of = |user| Sent {
        user: Some(user),
        ..a
    };
    let tool = |tool| Sent {
        tool: Some(tool),
        ..a
    };
    let once = || Quota::per_day(1);
    for (name, quota, runs, is_used_up) in [
        ("all", once(), vec![a], vec![a, b, of("u"), tool("A.Other")]),
        (
            "caller",
            once().by_caller(),
            vec![a, b],
            vec![of("u"), b, tool("A.Other")],
        ),
        (
            "user",
            once().by_user(),
            vec![
                a,
                of("u"),
                of("v"),
                of(""),
                b,
                Sent {
                    user: Some("u"),
                    ..b
                },
            ],
            vec![a, of("u"), b],
        ),
        (
            "tool",
            once().by_tool(),
            vec![tool("A.Act"), tool("A.Other")],
            vec![tool("A.Act@1.0.0"), tool("A.Act@2.0.0"), b],
        ),
        (
            "one tool",
            once().of_tool("A.Other"),
            vec![a, a, b, tool("A.Other")],
            vec![Sent {
                tool: Some("A.Other"),
                ..b
            }],
        ),
        ("none", Quota::per_day(0).by_tool(), vec![], vec![a, b]),
    ] {
        let fixture = Fixture::new(&[quota], Idempotency::none());
        for (nth, sent) in runs.into_iter().enumerate() {
            assert!(fixture.runs(sent).await, "{name} {nth}");
        }
        for (nth, sent) in is_used_up.into_iter().enumerate() {
            assert!(!fixture.runs(sent).await, "{name} {nth}");
        }
    }
}

#[tokio::test]
async fn a_window_begins_and_ends_with_the_calendars() {
    // The clock starts at noon of 5 October 2023.
    for (quota, until_end) in [
        (Quota::per_minute(2), Duration::from_mins(1)),
        (Quota::per_day(2), Duration::from_hours(12)),
    ] {
        let fixture = Fixture::new(&[quota], Idempotency::none());
        let call = Sent::default();
        let (last, rest) = (Duration::from_millis(1), until_end.as_secs() * 1000 - 1);
        assert!(fixture.runs(call).await);
        fixture.function.advance(Duration::from_millis(rest));
        assert!(fixture.runs(call).await);
        let reply = fixture.call(call).await;
        assert!(reply.is_exceeded());
        assert_eq!(reply.headers["retry-after"], "1");
        fixture.function.advance(last);
        assert!(fixture.runs(call).await && fixture.runs(call).await && !fixture.runs(call).await);
    }
}

#[tokio::test]
async fn a_refusal_says_which_quota_and_when_to_come_back() {
    let none = || Quota::per_day(0);
    for (quota, calls, subject) in [
        (none(), "calls per day", "all"),
        (none().by_user(), "calls per day for each user", "user"),
        (
            none().of_tool("A.Act"),
            "calls of A.Act per day",
            "tool:A.Act",
        ),
    ] {
        let fixture = Fixture::new(&[quota], Idempotency::none());
        let reply = fixture.call(Sent::default()).await;
        assert_eq!(reply.status, 400);
        let message = format!(
            "The quota of 0 {calls} is used up. Nothing was run; calls are accepted again in 12 hours."
        );
        assert_eq!(reply.body["developer_message"], message);
        let headers = &reply.headers;
        assert_eq!(headers["retry-after"], "43200");
        let state = format!("\"{subject}\";r=0;t=43200");
        assert_eq!(headers["ratelimit"], state);
        let policy = format!("\"{subject}\";q=0;w=86400");
        assert_eq!(headers["ratelimit-policy"], policy);
        // A client that retries by itself would wait in vain.
        assert_eq!(headers["x-should-retry"], Value::Null);
    }
}

#[tokio::test]
async fn replays_are_not_counted_and_rejected_calls_are_not_claimed() {
    let store = Plain::default();
    let idempotency = || Idempotency::in_store(store.clone());
    let fixture = Fixture::new(&[Quota::per_minute(1)], idempotency());
    let with_id = |id| Sent {
        call_id: Some(id),
        ..Sent::default()
    };
    assert!(fixture.runs(with_id("one")).await);
    assert_eq!(store.take(), ["put", "get", "put", "put"]);
    assert_eq!(
        fixture.call(with_id("one")).await.headers["idempotent-replay"],
        "true"
    );
    assert_eq!(store.take(), ["put"]);
    for requests in [["put", "get", "delete"].as_slice(), &["put", "delete"]] {
        // The second time, the instance knows that the window is full.
        assert!(!fixture.runs(with_id("two")).await);
        assert_eq!(store.take(), requests);
    }
    assert_eq!(
        fixture.call(with_id("one")).await.headers["idempotent-replay"],
        "true"
    );
    store.take();
    assert!(!fixture.runs(Sent::default()).await);
    assert!(store.take().is_empty());
    fixture.function.advance(Duration::from_mins(1));
    assert!(fixture.runs(with_id("two")).await);
}

#[tokio::test]
async fn who_has_no_quota_costs_nothing() {
    let store = Plain::default();
    let quotas = [Quota::per_day(1).of_tool("A.Other")];
    let fixture = Fixture::new(&quotas, Idempotency::in_store(store.clone()));
    assert!(fixture.runs(Sent::default()).await);
    assert!(store.take().is_empty());
}

#[tokio::test]
async fn rejected_calls_do_not_use_up_other_quotas() {
    let a = Sent {
        user: Some("u"),
        ..Sent::default()
    };
    let other = |user| Sent {
        user: Some(user),
        ..a
    };
    let b = Sent {
        key: Some("key-b-0123456789"),
        ..a
    };
    let other_tool = Sent {
        tool: Some("A.Other"),
        ..a
    };
    // The first quota lets one call run; the other one has room for two.
    for (name, first, second, later) in [
        (
            "all",
            Quota::per_day(1).by_tool(),
            Quota::per_minute(2),
            other_tool,
        ),
        (
            "tool",
            Quota::per_day(1).by_caller(),
            Quota::per_minute(2).by_tool(),
            b,
        ),
        (
            "caller",
            Quota::per_day(1).by_user(),
            Quota::per_minute(2).by_caller(),
            other("v"),
        ),
    ] {
        for quotas in [[first.clone(), second.clone()], [second, first]] {
            let fixture = Fixture::new(&quotas, Idempotency::none());
            for runs in [true, false, false, false] {
                assert_eq!(fixture.runs(a).await, runs, "{name}");
            }
            assert!(fixture.runs(later).await, "{name}");
        }
    }
    let (minute, day) = (Quota::per_minute(1), Quota::per_day(2));
    let fixture = Fixture::new(&[day, minute], Idempotency::none());
    for runs in [true, false, false] {
        assert_eq!(fixture.runs(a).await, runs);
    }
    fixture.function.advance(Duration::from_mins(1));
    assert!(fixture.runs(a).await);
    // Both are used up: only the later one matters.
    assert_eq!(fixture.call(a).await.headers["retry-after"], "60");
    fixture.function.advance(Duration::from_mins(1));
    assert!(!fixture.runs(a).await);
    let wait = 12 * 3600 - 120;
    assert_eq!(
        fixture.call(a).await.headers["retry-after"],
        wait.to_string()
    );
}

#[tokio::test]
async fn without_the_store_calls_are_rejected_unless_best_effort_is_set() {
    let store = Plain::default();
    let idempotency = || Idempotency::in_store(store.clone());
    let strict = Fixture::new(&[Quota::per_day(9)], idempotency());
    let lenient = Fixture::new(&[Quota::per_day(9).best_effort()], idempotency());
    for (is_down, is_denied, what) in [
        (true, false, "the store is not available: it is down"),
        (false, true, "access denied: allow it"),
    ] {
        store.0.is_down.store(is_down, Ordering::SeqCst);
        store.0.is_denied.store(is_denied, Ordering::SeqCst);
        let reply = strict.call(Sent::default()).await;
        assert_eq!(reply.status, 400);
        let detail = reply.body["developer_message"].as_str().unwrap();
        assert!(detail.contains(what), "{detail}");
        assert_eq!(reply.headers["retry-after"] == "1", is_down);
        // A missing permission stays until somebody grants it.
        assert_eq!(
            lenient.call(Sent::default()).await.status,
            if is_down { 200 } else { 400 }
        );
    }
    assert_eq!((strict.effects(), lenient.effects()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn several_quotas_wait_once_for_a_store_that_does_not_answer() {
    struct Silent;

    impl Store for Silent {
        fn get<'a>(&'a self, _: &'a str) -> StoreFuture<'a, Option<Record>> {
            Box::pin(std::future::pending())
        }

        fn put<'a>(&'a self, _: Write<'a>) -> StoreFuture<'a, PutOutcome> {
            Box::pin(std::future::pending())
        }

        fn delete<'a>(&'a self, _: &'a str, _: u64) -> StoreFuture<'a, ()> {
            Box::pin(std::future::pending())
        }
    }

    let day = || Quota::per_day(9);
    let quotas = [Quota::per_minute(9), day(), day().by_tool()];
    let lenient = quotas.clone().map(Quota::best_effort);
    for (quotas, effects) in [(quotas, 0), (lenient, 1)] {
        let fixture = Fixture::new(&quotas, Idempotency::in_store(Silent));
        let started = tokio::time::Instant::now();
        fixture.call(Sent::default()).await;
        assert_eq!(started.elapsed().as_secs(), 3);
        assert_eq!(fixture.effects(), effects);
    }
}

#[tokio::test]
async fn an_instance_whose_clock_is_off_counts_in_the_window_that_it_shows() {
    let noon = SystemTime::UNIX_EPOCH + Duration::from_hours(471_252);
    let store = Plain::default();
    let at = |now| {
        let idempotency = Idempotency::in_store(store.clone());
        Fixture::at(now, &[Quota::per_minute(2)], idempotency)
    };
    let (right, ahead, behind) = (
        at(noon),
        at(noon + Duration::from_mins(1)),
        at(noon - Duration::from_mins(1)),
    );
    for fixture in [&right, &ahead, &behind] {
        for runs in [true, true, false] {
            assert_eq!(fixture.runs(Sent::default()).await, runs);
        }
    }
    // A minute later, what the instance ahead has counted is missing.
    assert!(
        !at(noon + Duration::from_mins(1))
            .runs(Sent::default())
            .await
    );
    // Time to live deletes no number that an instance may still use.
    let records = store.0.records.lock().unwrap();
    assert_eq!(records.len(), 3);
    assert!(
        records
            .values()
            .all(|it| it.expires_at > noon + Duration::from_hours(23))
    );
}

#[tokio::test]
async fn sixty_four_callers_get_no_more_than_the_limit_of_a_store_without_counts() {
    let store = Plain::default();
    assert_eq!(
        concurrent_effects(|| Idempotency::in_store(store.clone())).await,
        LIMIT
    );
}

const LIMIT: usize = 150;

/// Lets 64 callers call two instances, five times each; returns the number of effects.
async fn concurrent_effects(idempotency: impl Fn() -> Idempotency) -> usize {
    let quotas = [Quota::per_day(LIMIT as u64)];
    let instances = [(), ()].map(|()| Arc::new(Fixture::new(&quotas, idempotency())));
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..64 {
        let fixture = Arc::clone(&instances[caller % 2]);
        callers.spawn(async move {
            let mut accepted = 0;
            for _ in 0..5 {
                let reply = fixture.call(Sent::default()).await;
                assert!(reply.status == 200 || reply.is_exceeded(), "{}", reply.body);
                accepted += usize::from(reply.status == 200);
            }
            accepted
        });
    }
    let accepted: usize = callers.join_all().await.into_iter().sum();
    let effects = instances.iter().map(|it| it.effects()).sum();
    assert_eq!(accepted, effects);
    effects
}
