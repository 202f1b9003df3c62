//! Instances that share one table, and what is in it.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_tools::idempotency::DynamoDb;
use serde_json::Value;
use test_support::{
    dynamodb,
    issuer::{Issuer, tokens_for},
};

use super::{assert_done, query_for};
use crate::{
    aws,
    consent_page::local::{Local, oauth_at},
};

const KEY: &str = "TOOLS_OAUTH_KEY";

/// The table, and the provider that issues the tokens in it.
struct Grants {
    table: dynamodb::DynamoDb,
    issuer: Issuer,
}

impl Grants {
    async fn start() -> Self {
        Self {
            table: dynamodb::DynamoDb::start("grants").await,
            issuer: Issuer::start().await,
        }
    }

    fn instance(&self, keys: &[&str]) -> Local {
        instance_at(&self.table.url(), &self.issuer, keys)
    }
}

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
async fn one_instance_finishes_what_another_started_and_one_call_refreshes_the_token() {
    let grants = Grants::start().await;
    let [one, other] = [(); 2].map(|()| grants.instance(&[KEY]));
    // A token that expires within a minute is refreshed by the next call.
    grants.issuer.change(|it| it.tokens = |_| tokens_for(30));
    let id = one.challenge("user-mark").await;
    let redirect = one.to_provider(&id).await;
    assert_done(&other.back(redirect.cookie(), &query_for(&redirect)).await);
    assert_eq!(one.status(&id).await, "completed");
    grants.issuer.change(|it| {
        it.tokens = |_| tokens_for(3600);
        it.delay = Duration::from_millis(100);
    });
    let calls = [&one, &other].repeat(6).into_iter().map(|server| {
        let server = server.clone();
        tokio::spawn(async move { server.call("user-mark").await["value"].clone() })
    });
    let mut tokens = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        tokens.push(call.await.unwrap());
    }
    assert!(
        tokens.iter().all(|it| it.is_string() && *it == tokens[0]),
        "{tokens:?}"
    );
    // A provider that rotates refresh tokens would revoke the grant after a second refresh.
    assert_eq!(grants.issuer.behaviour().token_requests, 2);

    let items: Vec<_> = grants.table.items().iter().map(readable).collect();
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
    let grants = Grants::start().await;
    let old = grants.instance(&[KEY]);
    assert_done(&old.finish(&old.challenge("alice").await, "code=c").await);
    // The use of the grant encrypts it with the first key.
    for keys in [&[KEY, "NEW_KEY"][..], &["NEW_KEY", KEY], &["NEW_KEY"]] {
        let called = grants.instance(keys).call("alice").await;
        assert!(called["value"].is_string(), "{keys:?}: {called}");
    }
    // Without its key, a grant is treated as missing.
    old.challenge("alice").await;
}
