//! Quotas: what is counted, how exactly, and what happens without the store. `events/quotas` has the
//! responses in each protocol.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use lambda_tools::{
    Failure, Server, StoreError, Tool, Toolkit,
    idempotency::Idempotency,
    quotas::Quota,
    testing::{ExpectedResponse, LambdaFunction},
};
use serde_json::{Value, json};

use crate::support::{self, Shared};

/// Returns the time of tests: noon of 5 October 2023.
fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(471_252)
}

/// A function, and the number of its tools' effects.
struct Fixture {
    function: LambdaFunction,
    effects: Arc<AtomicUsize>,
}

fn is_exceeded(response: &ExpectedResponse) -> bool {
    response.body["message"] == "Too many calls"
}

impl Fixture {
    fn new(quotas: &[Quota], idempotency: Idempotency) -> Self {
        let effects = Arc::default();
        let function = LambdaFunction::new(server(quotas, idempotency, &effects));
        Self { function, effects }
    }

    /// Creates a function whose clock shows this time.
    fn at(now: SystemTime, quotas: &[Quota], idempotency: Idempotency) -> Self {
        let effects = Arc::default();
        let server = server(quotas, idempotency, &effects);
        let started = std::time::Instant::now();
        let function = LambdaFunction::with_clocks(server, move || now, move || started);
        Self { function, effects }
    }

    async fn call(&self, tool: &str) -> ExpectedResponse {
        support::call(&self.function, tool, json!({})).await
    }

    /// Sends a call, and returns true if its quota was not used up.
    async fn runs(&self, tool: &str) -> bool {
        let before = self.effects();
        let reply = self.call(tool).await;
        let has_run = self.effects() > before;
        assert_eq!(has_run, !is_exceeded(&reply), "{}", reply.body);
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
    let server = Server::new(Toolkit::new(tools).unwrap()).idempotency(idempotency);
    quotas.iter().cloned().fold(server, Server::quota)
}

/// `events/quotas` has the refusal by a quota of one tool.
#[tokio::test]
async fn a_refusal_says_which_quota_and_when_to_come_back() {
    let none = || Quota::per_day(0);
    for (quota, calls, subject) in [
        (none(), "calls per day", "all"),
        (none().by_user(), "calls per day for each user", "user"),
    ] {
        let fixture = Fixture::new(&[quota], Idempotency::none());
        let reply = fixture.call("A.Act").await;
        let message = format!(
            "The quota of 0 {calls} is used up. Nothing was run; calls are accepted again in 12 hours."
        );
        assert_eq!(reply.body["developer_message"], message);
        let headers = &reply.headers;
        assert_eq!(headers["retry-after"], "43200");
        assert_eq!(headers["ratelimit"], format!("\"{subject}\";r=0;t=43200"));
        let policy = format!("\"{subject}\";q=0;w=86400");
        assert_eq!(headers["ratelimit-policy"], policy);
        // A client that retries by itself would wait in vain.
        assert!(!headers.contains_key("x-should-retry"));
    }
}

#[tokio::test]
async fn rejected_calls_do_not_use_up_other_quotas() {
    // One quota lets one call of each tool run; the other one has room for two.
    let (one, two) = (Quota::per_day(1).by_tool(), Quota::per_minute(2));
    for quotas in [[one.clone(), two.clone()], [two, one]] {
        let fixture = Fixture::new(&quotas, Idempotency::none());
        // All versions of a tool count together.
        for (tool, runs) in [
            ("A.Act", true),
            ("A.Act@1.0.0", false),
            ("A.Act@2.0.0", false),
            ("A.Other", true),
        ] {
            assert_eq!(fixture.runs(tool).await, runs, "{tool}");
        }
    }
    let quotas = [Quota::per_day(2), Quota::per_minute(1)];
    let store = Shared::default();
    for (minute, runs) in [(0, true), (0, false), (1, true), (2, false)] {
        let now = noon() + Duration::from_mins(minute);
        let fixture = Fixture::at(now, &quotas, Idempotency::in_store(store.clone()));
        assert_eq!(fixture.runs("A.Act").await, runs, "{minute}");
    }
}

#[tokio::test]
async fn without_the_store_calls_are_rejected() {
    let store = Shared::default();
    let idempotency = Idempotency::in_store(store.clone());
    let fixture = Fixture::new(&[Quota::per_day(9)], idempotency);
    // A missing permission stays until somebody grants it.
    for (error, is_temporary, what) in [
        (StoreError::unavailable("x"), true, "is not available: x"),
        (StoreError::denied("allow it"), false, "denied: allow it"),
    ] {
        *store.0.error.lock().unwrap() = Some(error);
        let reply = fixture.call("A.Act").await;
        assert_eq!(reply.status, 400);
        let detail = reply.body["developer_message"].as_str().unwrap();
        assert!(detail.contains(what), "{detail}");
        assert_eq!(reply.headers.contains_key("retry-after"), is_temporary);
    }
    assert_eq!(fixture.effects(), 0);
}

#[tokio::test(start_paused = true)]
async fn several_quotas_wait_once_for_a_store_that_does_not_answer() {
    let store = Shared::default();
    store.0.is_silent.store(true, Ordering::SeqCst);
    let day = || Quota::per_day(9);
    let quotas = [Quota::per_minute(9), day(), day().by_tool()];
    let fixture = Fixture::new(&quotas, Idempotency::in_store(store.clone()));
    let started = tokio::time::Instant::now();
    fixture.call("A.Act").await;
    assert_eq!(started.elapsed().as_secs(), 3);
    assert_eq!(fixture.effects(), 0);
}

#[tokio::test]
async fn an_instance_whose_clock_is_off_counts_in_the_window_that_it_shows() {
    let store = Shared::default();
    let minute = Duration::from_mins(1);
    for (now, runs) in [
        (noon(), [true, true, false]),
        (noon() + minute, [true, true, false]),
        (noon() - minute, [true, true, false]),
        // A minute later, what the instance ahead has counted is missing.
        (noon() + minute, [false, false, false]),
    ] {
        let idempotency = Idempotency::in_store(store.clone());
        let fixture = Fixture::at(now, &[Quota::per_minute(2)], idempotency);
        for runs in runs {
            assert_eq!(fixture.runs("A.Act").await, runs);
        }
    }
    // Time to live deletes no number that an instance may still use.
    let records = store.0.records.lock().unwrap();
    assert_eq!(records.len(), 3);
    let mut records = records.values();
    assert!(records.all(|it| it.expires_at > noon() + Duration::from_hours(23)));
}

#[cfg(feature = "dynamodb")]
mod dynamodb {
    use lambda_tools::idempotency::DynamoDb;
    use test_support::{aws::emulated, dynamodb};

    use super::*;
    use crate::aws;

    #[tokio::test(flavor = "multi_thread")]
    async fn sixty_four_callers_of_two_instances_get_exactly_the_limit() {
        let table = dynamodb::DynamoDb::start("calls").await;
        let instances = [(), ()].map(|()| {
            let store = DynamoDb::new("calls").client(aws::dynamodb_at(&table.url()));
            let idempotency = Idempotency::in_store(store);
            Arc::new(Fixture::new(&[Quota::per_day(150)], idempotency))
        });
        let mut callers = tokio::task::JoinSet::new();
        for caller in 0..64 {
            let fixture = Arc::clone(&instances[caller % 2]);
            callers.spawn(async move {
                for _ in 0..5 {
                    let reply = fixture.call("A.Act").await;
                    assert!(reply.status == 200 || is_exceeded(&reply), "{}", reply.body);
                }
            });
        }
        callers.join_all().await;
        let effects: usize = instances.iter().map(|it| it.effects()).sum();
        assert_eq!(effects, 150);
    }

    #[tokio::test]
    #[ignore = "needs moto; run tests/all"]
    async fn a_number_is_an_item_and_a_missing_permission_is_named() {
        let (_emulator, proxy) = emulated().await;
        proxy.create_table("calls").await;
        let store = DynamoDb::new("calls").client(aws::dynamodb(&proxy));
        let fixture = Fixture::new(&[Quota::per_day(2)], Idempotency::in_store(store));
        assert!(fixture.runs("A.Act").await);
        let items = proxy.items("calls").await;
        assert!(items[0]["id"]["S"].as_str().unwrap().starts_with("quota#"));
        // Midnight, and a day.
        assert_eq!(items[0]["expires_at"]["N"], "1696636800");
        proxy.fail_with(400, "AccessDeniedException", "");
        let reply = fixture.call("A.Act").await;
        let detail = reply.body["developer_message"].as_str().unwrap();
        let permission = "allow dynamodb:UpdateItem on the table 'calls'";
        assert!(detail.contains(permission), "{detail}");
    }
}
