//! Several processes on one table, what stands in it, and what they print.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use aws_sdk_dynamodb::types::AttributeValue;
use lambda_tools::client::oxp::CallOutcome;
use serde_json::Value;
use test_support::{
    Running,
    aws::Emulator,
    marks::Scratch,
    openid::{Act, Browser, OpenId},
};

use super::{KEY, call, challenge_in, client_of, status};
use crate::tools::program;

const TABLE: &str = "grants";

struct Instance {
    running: Running,
    url: String,
}

/// A process that keeps its grants in the table.
fn instance_with(openid: &OpenId, dynamodb: &str, change: impl FnOnce(&mut Command)) -> Instance {
    let mut command = program();
    command
        .env("TOOLS_GOOGLE_CLIENT_ID", "toolbox")
        .env("TOOLS_GOOGLE_CLIENT_SECRET", "toolbox-secret")
        .env("TOOLS_GOOGLE_ISSUER", &openid.url)
        .env("TOOLS_OAUTH_KEY", KEY)
        .env("TOOLS_OAUTH_TABLE", TABLE)
        .env("AWS_ENDPOINT_URL_DYNAMODB", dynamodb)
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1")
        .env("RUST_LOG", "trace")
        .stderr(Stdio::null());
    change(&mut command);
    let (running, url) = Running::serving(&mut command);
    Instance { running, url }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and moto; run tests/all"]
async fn one_instance_begins_and_another_finishes() {
    let openid = OpenId::with(&[
        ("ACCESS_TOKEN_TTL", "1"),
        ("ROTATE", "1"),
        ("TOKEN_DELAY_MS", "200"),
    ]);
    let emulator = Emulator::start().await;
    let gate = emulator.gate().await;
    gate.make_table(TABLE).await;
    let tokens = Scratch::new("tokens");
    let with_tokens = |public_url: Option<&str>| {
        instance_with(&openid, &gate.url(), |command| {
            command.env("TOKENS", &tokens.0);
            if let Some(url) = public_url {
                command.env("TOOLS_PUBLIC_URL", url);
            }
        })
    };
    let second = with_tokens(None);
    let first = with_tokens(Some(&second.url));
    openid.allow_redirects_to(&second.url).await;
    let (one, other) = (client_of(&first.url), client_of(&second.url));

    let challenge = challenge_in(call(&one, "Gmail.GetEmails", "user-mark-1").await);
    assert!(challenge.url.starts_with(&second.url), "{challenge:?}");
    let browser = Browser::of("alice");
    let callback = browser.follow_to_callback(&challenge.url, Act::Allow).await;
    let page = browser.get(callback.as_str()).await;
    assert!(page.body.contains("Done"), "{page:?}");
    let here = challenge.check_url.replace(&second.url, &first.url);
    let here: Value = reqwest::get(here).await.unwrap().json().await.unwrap();
    assert_eq!(here["status"], "completed");
    assert_eq!(status(&challenge).await, "completed");

    // The token has expired, and the provider's refresh tokens work once: of many calls on both
    // instances one refreshes at a time. A second use would revoke the grant.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let calls = (0..12).map(|number| {
        let client = if number % 2 == 0 {
            one.clone()
        } else {
            other.clone()
        };
        tokio::spawn(async move { call(&client, "Gmail.GetEmails", "user-mark-1").await })
    });
    let mut answered = 0;
    for done in calls.collect::<Vec<_>>() {
        let outcome = done.await.unwrap();
        assert!(matches!(outcome, CallOutcome::Value(_)), "{outcome:?}");
        answered += 1;
    }
    assert_eq!(answered, 12);
    let (refreshed, refused) = openid.asked_for("refresh_token").await;
    assert!(refreshed >= 1 && refused == 0, "{refreshed} {refused}");
    assert!(
        call(&one, "Gmail.GetEmails", "user-mark-1")
            .await
            .value()
            .is_some()
    );

    let query = |name: &str| {
        let mut pairs = callback.query_pairs().into_owned();
        pairs.find(|(key, _)| key == name).unwrap().1
    };
    let state = query("state");
    let mut marks = vec![
        query("code"),
        state.rsplit('.').next().unwrap().to_owned(),
        KEY.to_owned(),
        "toolbox-secret".to_owned(),
    ];
    let tokens = tokens.text();
    assert!(tokens.lines().count() > 1, "tools had tokens");
    marks.extend(tokens.lines().map(str::to_owned));
    // Nothing of it in the table, not even for whom it is.
    let items = gate.items(TABLE).await;
    items.iter().for_each(assert_readable);
    let items = format!("{items:?}");
    assert!(items.contains("challenge#") && items.contains("grant#"));
    for mark in marks
        .iter()
        .map(String::as_str)
        .chain(["user-mark-1", "gmail.readonly"])
    {
        assert!(!items.contains(mark), "{mark} stands in the table");
    }
    // Nor in what is printed, whatever is logged.
    tokio::time::sleep(Duration::from_millis(200)).await;
    for instance in [&first, &second] {
        let lines = instance.running.lines();
        assert!(lines.len() > 50, "everything is logged");
        for mark in &marks {
            let line = lines.iter().find(|line| line.contains(mark));
            assert_eq!(line, None, "{mark} is printed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and moto; run tests/all"]
async fn a_table_that_is_down_is_said_and_passes() {
    let openid = OpenId::start();
    let emulator = Emulator::start().await;
    let gate = emulator.gate().await;
    gate.make_table(TABLE).await;
    let instance = instance_with(&openid, &gate.url(), |_| ());
    openid.allow_redirects_to(&instance.url).await;
    let client = client_of(&instance.url);
    let challenge = challenge_in(call(&client, "Gmail.GetEmails", "user-1").await);
    gate.refuse(400, "AccessDeniedException", "no");
    let outcome = call(&client, "Gmail.GetEmails", "user-1").await;
    assert!(
        outcome.message().contains("cannot ask the user"),
        "{outcome:?}"
    );
    gate.open();
    Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    let value = call(&client, "Gmail.GetEmails", "user-1").await;
    assert!(value.value().is_some());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and moto; run tests/all"]
async fn keys_can_be_rotated() {
    let openid = OpenId::start();
    let emulator = Emulator::start().await;
    let gate = emulator.gate().await;
    gate.make_table(TABLE).await;
    let with_keys = |keys: &str| {
        instance_with(&openid, &gate.url(), |command| {
            command
                .env("OLD_KEY", KEY)
                .env("NEW_KEY", "another-key-of-this-server-0123456789")
                .env("TOOLS_OAUTH_KEY_IDS", keys);
        })
    };
    let ask = async |instance: &Instance| {
        call(&client_of(&instance.url), "Gmail.GetEmails", "user-1").await
    };
    let old = with_keys("OLD_KEY");
    openid.allow_redirects_to(&old.url).await;
    let challenge = challenge_in(ask(&old).await);
    Browser::of("alice")
        .follow(&challenge.url, Act::Allow)
        .await;
    // As the version before has numbered them: by microseconds since 1970.
    let client = crate::aws::dynamodb(&gate);
    let items = client.scan().table_name(TABLE).send().await.unwrap();
    for mut item in items.items().to_vec() {
        let version = AttributeValue::N("1696507200000000".to_owned());
        item.insert("version".to_owned(), version);
        let put = client.put_item().table_name(TABLE).set_item(Some(item));
        put.send().await.unwrap();
    }
    for keys in ["OLD_KEY,NEW_KEY", "NEW_KEY,OLD_KEY"] {
        assert!(ask(&with_keys(keys)).await.value().is_some(), "{keys}");
    }
    // It was encrypted anew when it was used.
    assert!(ask(&with_keys("NEW_KEY")).await.value().is_some());
    // Without the key that it is encrypted with, a grant is none.
    challenge_in(ask(&with_keys("OLD_KEY")).await);
}

/// What every version of this library reads and writes: with a version, nobody writes over another's
/// change.
fn assert_readable(item: &Value) {
    let version = item["version"]["N"].as_str().unwrap();
    assert!(version.parse::<u64>().is_ok(), "{item}");
    for (name, kind) in [("expires_at", "N"), ("key_id", "S"), ("sealed", "B")] {
        assert!(item[name][kind].is_string(), "{item}");
    }
    assert_eq!(item.as_object().unwrap().len(), 5, "{item}");
}
