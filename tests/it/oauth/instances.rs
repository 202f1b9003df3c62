//! Instances that share one table, and what is in it.

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_tools::idempotency::DynamoDb;
use serde_json::Value;
use test_support::dynamodb;

use super::*;
use crate::aws;

const KEY: &str = "TOOLS_OAUTH_KEY";

fn instance_at(table: &str, issuer: &Issuer, keys: &[&str]) -> Local {
    let store = DynamoDb::new("grants").client(aws::dynamodb_at(table));
    let oauth = oauth_at(issuer).key_ids(keys.iter().copied());
    Local::with_oauth(oauth.in_store(store))
}

/// Returns all that can be read in an item.
fn readable(item: &Value) -> String {
    let fields = item.as_object().unwrap().values();
    let bytes = fields.filter_map(|it| BASE64_STANDARD.decode(it["B"].as_str()?).ok());
    let texts = bytes.map(|it| String::from_utf8_lossy(&it).into_owned());
    item.to_string() + &texts.collect::<String>()
}

#[tokio::test]
async fn instances_share_challenges_and_grants_that_nobody_can_read_in_the_table() {
    let table = dynamodb::DynamoDb::start("grants").await;
    let issuer = Issuer::start().await;
    let [one, other] = [(); 2].map(|()| instance_at(&table.url(), &issuer, &[KEY]));
    // A token that expires within a minute is refreshed by the next call.
    issuer.change(|it| it.tokens = |_| tokens_for(30));
    let id = one.challenge("user-mark").await;
    let redirect = one.to_provider(&id).await;
    assert_done(&other.back(redirect.cookie(), &query_for(&redirect)).await);
    assert_eq!(one.status(&id).await, "completed");
    issuer.change(|it| it.tokens = |_| tokens_for(3600));
    for instance in [&one, &other] {
        let called = instance.call("user-mark").await;
        assert!(called["value"].is_string(), "{called}");
    }
    // The other instance uses the token that the first one has refreshed.
    assert_eq!(issuer.behaviour().token_requests, 2);

    let items: Vec<_> = table.items().iter().map(readable).collect();
    let items = items.join("\n");
    assert!(items.contains("challenge#") && items.contains("grant#"));
    for mark in ["user-mark", "token-", "mail.read", "secret-of-this-server"] {
        assert!(!items.contains(mark), "{mark}: {items}");
    }
}

#[tokio::test]
async fn an_unavailable_table_is_reported() {
    let issuer = Issuer::start().await;
    let instance = instance_at("http://127.0.0.1:9", &issuer, &[KEY]);
    let error = instance.call("alice").await;
    let detail = "the store is not available: DynamoDB cannot be reached";
    assert_eq!(error["developer_message"], detail, "{error}");
}

#[tokio::test]
async fn keys_can_be_rotated() {
    let table = dynamodb::DynamoDb::start("grants").await;
    let issuer = Issuer::start().await;
    let instance = |keys: &[&str]| instance_at(&table.url(), &issuer, keys);
    let old = instance(&[KEY]);
    assert_done(&old.finish(&old.challenge("alice").await, "code=c").await);
    // The use of the grant encrypts it with the first key.
    for keys in [&[KEY, "NEW_KEY"][..], &["NEW_KEY", KEY], &["NEW_KEY"]] {
        let called = instance(keys).call("alice").await;
        assert!(called["value"].is_string(), "{keys:?}: {called}");
    }
    // Without its key, a grant is treated as missing.
    old.challenge("alice").await;
}
