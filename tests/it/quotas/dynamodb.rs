//! Quotas in a table of DynamoDB.

use std::time::Duration;

use lambda_tools::{
    idempotency::{DynamoDb, Idempotency},
    quotas::Quota,
};
use test_support::{aws::Emulator, dynamodb};

use super::{A, Fixture, LIMIT, Sent, concurrent_effects};
use crate::aws;

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_callers_of_two_instances_get_exactly_the_limit() {
    let table = dynamodb::DynamoDb::start("calls").await;
    let idempotency =
        || Idempotency::in_store(DynamoDb::new("calls").client(aws::dynamodb_at(&table.url())));
    assert_eq!(concurrent_effects(idempotency).await, LIMIT);
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_counted_call_costs_one_write_more() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    proxy.create_table("calls").await;
    let idempotency = Idempotency::in_store(DynamoDb::new("calls").client(aws::dynamodb(&proxy)));
    let fixture = Fixture::new(&[Quota::per_day(2).of_tool("A.Act")], idempotency);
    let with_id = |id| Sent {
        call_id: Some(id),
        ..A
    };
    assert!(fixture.runs(A).await);
    assert_eq!(proxy.take_actions(), ["UpdateItem"]);
    assert!(fixture.runs(with_id("one")).await);
    assert_eq!(proxy.take_actions(), ["PutItem", "UpdateItem", "PutItem"]);
    assert!(!fixture.runs(with_id("two")).await);
    let actions = proxy.take_actions();
    assert_eq!(actions, ["PutItem", "UpdateItem", "DeleteItem"]);
    // The instance knows that the window is full.
    assert!(!fixture.runs(A).await);
    assert!(fixture.runs(A.tool("A.Other")).await);
    assert!(proxy.take_actions().is_empty());
    let items = proxy.items("calls").await;
    let item = items.iter().find(|it| it["count"]["N"] == "2").unwrap();
    assert!(item["id"]["S"].as_str().unwrap().starts_with("quota#"));
    // Midnight, and a day.
    assert_eq!(item["expires_at"]["N"], "1696636800");
    // A missing permission is named.
    fixture.function.advance(Duration::from_hours(24));
    proxy.fail_with(400, "AccessDeniedException", "");
    let reply = fixture.call(A).await;
    let detail = reply.body["developer_message"].as_str().unwrap();
    let permission = "allow dynamodb:UpdateItem on the table 'calls'";
    assert!(detail.contains(permission), "{detail}");
}
