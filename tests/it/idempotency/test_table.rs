//! The table that tests of races and faults use, compared with moto, on which no test may race.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use lambda_tools::{
    idempotency::DynamoDb as LibraryStore,
    store::{Field, PutOutcome, Record, Store},
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::{Value, json};
use test_support::{
    aws::Emulator,
    dynamodb::{
        Applied, DynamoDb, Fault, Interception, Interceptor, OnRequest, OnResponse, Operation,
        Request,
    },
};

use crate::aws;

const TABLE: &str = "calls";

/// An operation of a store, with times in milliseconds since 1970.
#[derive(Clone, Debug)]
enum Action {
    Get(usize),
    Put {
        id: usize,
        record: Record,
        over: Option<u64>,
        now: u64,
    },
    Delete(usize, u64),
}

fn at(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

/// Few values, so that many conditions are met and many are not.
fn actions() -> impl Strategy<Value = Vec<Action>> {
    let version = || prop_oneof![0..3_u64, Just((1 << 62) - 1)];
    // Around the limits of a second, because one attribute is in seconds.
    let time = || prop_oneof![Just(0), 999..1002_u64, 1999..2002_u64, Just(3_600_000)];
    let fields = (".{0,9}", any::<Vec<u8>>(), any::<bool>(), any::<u64>());
    let record = (version(), proptest::option::of(time()), time(), fields);
    let record = record.prop_map(
        |(version, free_at, expires_at, (text, bytes, flag, number))| Record {
            version,
            fields: vec![
                ("fingerprint".into(), Field::Text(text)),
                ("outcome".into(), Field::Bytes(bytes)),
                ("at_most_once".into(), Field::Flag(flag)),
                ("until".into(), Field::Number(number)),
            ],
            eviction: None,
            free_at: free_at.map(at),
            expires_at: at(expires_at),
        },
    );
    let over = proptest::option::of(version());
    let put = (0..2_usize, record, over, time());
    let action = prop_oneof![
        1 => (0..2_usize).prop_map(Action::Get),
        4 => put.prop_map(|(id, record, over, now)| Action::Put { id, record, over, now }),
        1 => (0..2_usize, version()).prop_map(|(id, version)| Action::Delete(id, version)),
    ];
    proptest::collection::vec(action, 1..12)
}

/// A result as text, with the fields in order.
async fn result_of(store: &LibraryStore, case: usize, action: &Action) -> String {
    let id = |number: usize| format!("case-{case}-{number}");
    let in_order = |mut record: Record| {
        record.fields.sort_by(|one, two| one.0.cmp(&two.0));
        record
    };
    match action {
        Action::Get(number) => {
            let record = store.get(&id(*number)).await;
            format!("{:?}", record.map(|it| it.map(in_order)))
        }
        Action::Put {
            id: number,
            record,
            over,
            now,
        } => {
            let outcome = store.put(&id(*number), record, *over, at(*now)).await;
            let outcome = outcome.map(|outcome| match outcome {
                PutOutcome::Conflict(current) => PutOutcome::Conflict(current.map(in_order)),
                written @ PutOutcome::Written => written,
            });
            format!("{outcome:?}")
        }
        Action::Delete(number, version) => {
            format!("{:?}", store.delete(&id(*number), *version).await)
        }
    }
}

fn store_at(url: &str) -> LibraryStore {
    LibraryStore::new(TABLE).client(aws::dynamodb_at(url))
}

/// Carries out the same actions on this table and on moto's; returns the kinds of results.
async fn compare(
    [store, of_moto]: &[LibraryStore; 2],
    case: usize,
    actions: &[Action],
) -> Result<Vec<String>, TestCaseError> {
    let mut kinds = Vec::new();
    for action in actions {
        let result = result_of(store, case, action).await;
        let expected = result_of(of_moto, case, action).await;
        if result != expected {
            let text = format!("{action:?}: {result}, but moto returns {expected}");
            return Err(TestCaseError::fail(text));
        }
        kinds.push(result.chars().take(12).collect());
    }
    Ok(kinds)
}

#[test]
#[ignore = "needs moto; run tests/all"]
fn a_sequence_of_operations_has_the_results_that_moto_returns() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (emulator, table) =
        runtime.block_on(async { (Emulator::start().await, DynamoDb::start(TABLE).await) });
    let proxy = runtime.block_on(emulator.proxy());
    runtime.block_on(proxy.create_table(TABLE));
    let stores = [store_at(&table.url()), store_at(emulator.url())];
    let config = Config {
        cases: 200,
        failure_persistence: None,
        ..Config::default()
    };
    let (case, kinds) = (Cell::new(0), RefCell::new(BTreeSet::new()));
    let checked = TestRunner::new(config).run(&actions(), |actions| {
        case.set(case.get() + 1);
        let results = runtime.block_on(compare(&stores, case.get(), &actions))?;
        kinds.borrow_mut().extend(results);
        Ok(())
    });
    checked.unwrap();
    let kinds = kinds.into_inner();
    for kind in ["Ok(Some", "Ok(None", "Ok(Written", "Ok(Conflict"] {
        assert!(kinds.iter().any(|it| it.starts_with(kind)), "{kind}");
    }
    let of_moto = runtime.block_on(proxy.items(TABLE));
    assert_eq!(by_id(table.items()), by_id(of_moto));
}

fn by_id(items: Vec<Value>) -> BTreeMap<String, Value> {
    let items = items.into_iter();
    items.map(|item| (item["id"].to_string(), item)).collect()
}

/// Sends a request without an AWS client; returns the status and the error's name.
async fn send(url: &str, operation: &str, body: &Value) -> Option<(u16, String)> {
    let credential = "test/20260101/us-east-1/dynamodb/aws4_request";
    let request = reqwest::Client::new()
        .post(url)
        .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
        .header("content-type", "application/x-amz-json-1.0")
        .header(
            "authorization",
            format!("AWS4-HMAC-SHA256 Credential={credential}"),
        )
        .timeout(Duration::from_secs(5))
        .body(body.to_string());
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    let body: Value = response.json().await.ok()?;
    let kind = body["__type"].as_str().unwrap_or_default();
    let kind = kind.rsplit('#').next().unwrap_or_default();
    Some((status, kind.to_owned()))
}

const ABSENT: &str = "attribute_not_exists(id)";

fn put(item: &Value) -> Value {
    json!({"TableName": TABLE, "Item": item, "ConditionExpression": ABSENT})
}

/// An item of this size: its names and texts have four bytes more than the long text.
fn item_of(size: usize) -> Value {
    json!({"id": {"S": "k"}, "v": {"S": "x".repeat(size - 4)}})
}

/// Requests, and the errors that they get.
fn requests() -> Vec<(&'static str, Value, &'static str)> {
    const INVALID: &str = "ValidationException";
    const CONFLICT: &str = "ConditionalCheckFailedException";
    let compared = |condition: &str| {
        let mut put = put(&json!({"id": {"S": "compared"}}));
        put["ConditionExpression"] = condition.into();
        put["ExpressionAttributeValues"] = json!({":one": {"N": "1"}});
        put
    };
    let get =
        |table: &str, key: Value| json!({"TableName": table, "Key": key, "ConsistentRead": true});
    let key = json!({"id": {"S": "k"}});
    let delete = json!({"TableName": TABLE, "Key": key, "ConditionExpression": ABSENT});
    vec![
        // moto's limit is 405,000 bytes.
        ("PutItem", put(&item_of(404_000)), ""),
        ("PutItem", put(&item_of(411_000)), INVALID),
        ("PutItem", put(&key), CONFLICT),
        ("PutItem", put(&json!({"v": {"S": "k"}})), INVALID),
        ("PutItem", put(&json!({"id": {"N": "1"}})), INVALID),
        ("PutItem", put(&json!({"id": {"S": ""}})), INVALID),
        (
            "PutItem",
            put(&json!({"id": {"S": "x".repeat(2049)}})),
            INVALID,
        ),
        ("PutItem", compared("id = :one"), CONFLICT),
        (
            "GetItem",
            get("none", key.clone()),
            "ResourceNotFoundException",
        ),
        ("GetItem", get(TABLE, json!({"other": {"S": "k"}})), INVALID),
        ("DeleteItem", delete, CONFLICT),
    ]
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn invalid_requests_get_the_errors_that_moto_returns() {
    let (emulator, table) = (Emulator::start().await, DynamoDb::start(TABLE).await);
    emulator.proxy().await.create_table(TABLE).await;
    for (operation, body, error) in requests() {
        let status = if error.is_empty() { 200 } else { 400 };
        let expected = Some((status, error.to_owned()));
        let text: String = body.to_string().chars().take(200).collect();
        for url in [&*table.url(), emulator.url()] {
            let result = send(url, operation, &body).await;
            assert_eq!(result, expected, "{url}: {operation} {text}");
        }
    }
}

#[tokio::test]
async fn an_item_may_be_400_kb_large() {
    let table = DynamoDb::start(TABLE).await;
    for (size, expected) in [(400 * 1024 + 1, 400), (400 * 1024, 200)] {
        let (status, _) = send(&table.url(), "PutItem", &put(&item_of(size)))
            .await
            .unwrap();
        assert_eq!(status, expected, "{size}");
    }
}

/// moto fails on the first, and ignores the second.
#[tokio::test]
async fn a_condition_names_the_values_that_the_request_has() {
    let table = DynamoDb::start(TABLE).await;
    for (condition, values) in [
        ("id = :v", json!({":other": {"N": "1"}})),
        (ABSENT, json!({":v": {"N": "1"}})),
    ] {
        let mut put = put(&json!({"id": {"S": "k"}}));
        put["ConditionExpression"] = condition.into();
        put["ExpressionAttributeValues"] = values;
        let expected = Some((400, "ValidationException".to_owned()));
        assert_eq!(send(&table.url(), "PutItem", &put).await, expected);
    }
}

#[tokio::test]
async fn what_the_table_does_not_know_is_an_error() {
    let table = DynamoDb::start(TABLE).await;
    for condition in [
        "version <> :v",
        "NOT version = :v",
        "version = :v OR size(id) > :v",
        "begins_with(id, :v)",
        "version BETWEEN :v AND :v",
        "version IN (:v)",
        "a.b = :v",
        "a[0] = :v",
        "#n = :v",
        "version = :v)",
        "(version = :v",
        "version = :v version",
        "version =",
        "",
        "version == :v",
        "attribute_not_exists(:v)",
        "version = :v XOR version = :v",
        "attribute_exists id",
    ] {
        let mut put = put(&json!({"id": {"S": "k"}}));
        put["ConditionExpression"] = condition.into();
        put["ExpressionAttributeValues"] = json!({":v": {"N": "1"}});
        let (status, _) = send(&table.url(), "PutItem", &put).await.unwrap();
        assert_eq!(status, 501, "{condition}");
    }
    let item = json!({"id": {"S": "k"}});
    for (operation, body) in [
        ("Scan", json!({"TableName": TABLE})),
        ("GetItem", json!({"TableName": TABLE, "Key": item})),
        ("PutItem", json!({"TableName": TABLE, "Item": item})),
        ("PutItem", put(&json!({"id": {"S": "k"}, "v": {"L": []}}))),
        (
            "PutItem",
            put(&json!({"id": {"S": "k"}, "v": {"N": "1.5"}})),
        ),
        (
            "DeleteItem",
            json!({"TableName": TABLE, "Key": item, "ReturnValues": "ALL_OLD"}),
        ),
    ] {
        let (status, _) = send(&table.url(), operation, &body).await.unwrap();
        assert_eq!(status, 501, "{operation} {body}");
    }
    assert!(table.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_claims_one_is_written() {
    let table = DynamoDb::start(TABLE).await;
    for round in 0..20 {
        let mut claims = tokio::task::JoinSet::new();
        for version in 0..16 {
            let (store, id) = (store_at(&table.url()), format!("round-{round}"));
            let record = Record {
                version,
                fields: Vec::new(),
                eviction: None,
                free_at: Some(at(5000)),
                expires_at: at(5000),
            };
            claims.spawn(async move {
                let outcome = store.put(&id, &record, None, at(1000)).await.unwrap();
                outcome == PutOutcome::Written
            });
        }
        let written = claims.join_all().await.into_iter().filter(|it| *it).count();
        assert_eq!(written, 1);
    }
}

#[tokio::test]
async fn expired_items_remain_until_they_are_deleted() {
    let table = DynamoDb::start(TABLE).await;
    for seconds in ["10", "11"] {
        let item = json!({"id": {"S": seconds}, "expires_at": {"N": seconds}});
        let sent = send(&table.url(), "PutItem", &put(&item)).await;
        assert_eq!(sent, Some((200, String::new())));
    }
    assert_eq!((table.len(), table.delete_expired(at(9_999))), (2, 0));
    assert_eq!((table.delete_expired(at(10_000)), table.len()), (1, 1));
    assert_eq!(table.items()[0]["id"]["S"], "11");
}

/// Treats every request in the same way.
struct Always(OnRequest, OnResponse);

impl Interceptor for Always {
    fn on_request<'a>(&'a self, _: &'a Request) -> Interception<'a, OnRequest> {
        Box::pin(async { self.0 })
    }

    fn on_response<'a>(
        &'a self,
        request: &'a Request,
        applied: &'a Applied,
    ) -> Interception<'a, OnResponse> {
        assert_eq!(
            (request.operation, &*request.access_key),
            (Operation::PutItem, "test")
        );
        assert!(applied.has_written);
        Box::pin(async { self.1 })
    }
}

#[tokio::test]
async fn an_interceptor_decides_on_each_request_and_its_response() {
    let throttled = "ThrottlingException";
    let exceeded = "ProvisionedThroughputExceededException";
    let conflict = "ConditionalCheckFailedException";
    for (on_request, on_response, is_written, response) in [
        (OnRequest::Apply, OnResponse::Send, true, Some((200, ""))),
        (
            OnRequest::ApplyTwice,
            OnResponse::Send,
            true,
            Some((400, conflict)),
        ),
        (OnRequest::Lose, OnResponse::Send, false, None),
        (OnRequest::Ignore, OnResponse::Send, false, None),
        (
            OnRequest::Fail(Fault::Throttling),
            OnResponse::Send,
            false,
            Some((400, throttled)),
        ),
        (
            OnRequest::Fail(Fault::Internal),
            OnResponse::Send,
            false,
            Some((500, "InternalServerError")),
        ),
        (OnRequest::Apply, OnResponse::Lose, true, None),
        (OnRequest::Apply, OnResponse::Ignore, true, None),
        (
            OnRequest::Apply,
            OnResponse::Fail(Fault::ThroughputExceeded),
            true,
            Some((400, exceeded)),
        ),
        (
            OnRequest::Apply,
            OnResponse::Fail(Fault::Unavailable),
            true,
            Some((503, "ServiceUnavailableException")),
        ),
    ] {
        let interceptor = Arc::new(Always(on_request, on_response));
        let table = DynamoDb::intercepted(TABLE, interceptor).await;
        let body = put(&json!({"id": {"S": "k"}}));
        let url = table.url();
        let sent = tokio::time::timeout(Duration::from_secs(1), send(&url, "PutItem", &body));
        let received = sent.await.unwrap_or_default();
        let expected = response.map(|(status, kind)| (status, kind.to_owned()));
        assert_eq!(received, expected, "{on_request:?} {on_response:?}");
        assert_eq!(
            table.len(),
            usize::from(is_written),
            "{on_request:?} {on_response:?}"
        );
    }
}

/// Delays every request.
struct Late;

impl Interceptor for Late {
    fn on_request<'a>(&'a self, _: &'a Request) -> Interception<'a, OnRequest> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            OnRequest::Apply
        })
    }

    fn on_response<'a>(&'a self, _: &'a Request, _: &'a Applied) -> Interception<'a, OnResponse> {
        Box::pin(async { OnResponse::Send })
    }
}

/// Waits for a condition.
async fn until(is_met: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_met() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the condition is not met in time");
}

#[tokio::test]
async fn a_late_request_is_applied_although_its_client_has_gone() {
    let table = DynamoDb::intercepted(TABLE, Arc::new(Late)).await;
    let (url, body) = (table.url(), put(&json!({"id": {"S": "k"}})));
    let sending = tokio::spawn(async move { send(&url, "PutItem", &body).await });
    until(|| table.requests() == 1).await;
    sending.abort();
    assert!(table.is_empty());
    until(|| table.len() == 1).await;
}
