//! Several processes that share one table, the items in it, and the processes' output.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use lambda_tools::client::oxp::CallOutcome;
use serde_json::Value;
use test_support::{
    Running,
    aws::{CREDENTIALS, Emulator},
    marks::Scratch,
    openid::{Act, Browser, OpenId},
};

use super::{KEY, allow, call, challenge_in, client_of, status};
use crate::tools::program;

const TABLE: &str = "grants";

struct Instance {
    running: Running,
    url: String,
}

/// Starts a process that stores its grants in the table.
fn instance_with(openid: &OpenId, dynamodb: &str, change: impl FnOnce(&mut Command)) -> Instance {
    let mut command = program();
    command
        .envs(openid.variables())
        .envs(CREDENTIALS)
        .env("TOOLS_OAUTH_TABLE", TABLE)
        .env("AWS_ENDPOINT_URL_DYNAMODB", dynamodb)
        .env("RUST_LOG", "trace")
        .stderr(Stdio::null());
    change(&mut command);
    let (running, url) = Running::serving(&mut command);
    Instance { running, url }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and moto; run tests/all"]
async fn one_instance_can_finish_the_flow_that_another_started() {
    let openid = OpenId::with(&[
        ("ACCESS_TOKEN_TTL", "3"),
        ("ROTATE", "1"),
        ("TOKEN_DELAY_MS", "200"),
    ]);
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    proxy.create_table(TABLE).await;
    let tokens = Scratch::new("tokens");
    let with_tokens = |public_url: Option<&str>| {
        instance_with(&openid, &proxy.url(), |command| {
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
    let check_url = challenge.check_url.replace(&second.url, &first.url);
    let body: Value = reqwest::get(check_url).await.unwrap().json().await.unwrap();
    assert_eq!(body["status"], "completed");
    assert_eq!(status(&challenge).await, "completed");

    // The token expires within a minute, and each refresh token works once: a second use would revoke the
    // grant. So of many calls on both instances, only one may refresh at a time.
    let calls = (0..12).map(|number| {
        let client = if number % 2 == 0 {
            one.clone()
        } else {
            other.clone()
        };
        // Whoever waits too long for another's refresh is asked to come back.
        tokio::spawn(async move {
            let mut outcome = call(&client, "Gmail.GetEmails", "user-mark-1").await;
            for _ in 0..20 {
                if !matches!(outcome, CallOutcome::ServerError(_)) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
                outcome = call(&client, "Gmail.GetEmails", "user-mark-1").await;
            }
            outcome
        })
    });
    let mut completed = 0;
    for call in calls.collect::<Vec<_>>() {
        let outcome = call.await.unwrap();
        assert!(matches!(outcome, CallOutcome::Value(_)), "{outcome:?}");
        completed += 1;
    }
    assert_eq!(completed, 12);
    let (successes, failures) = openid.token_requests("refresh_token").await;
    assert!(successes >= 1 && failures == 0, "{successes} {failures}");
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
    // The table contains none of it, not even the user.
    let items = format!("{:?}", proxy.items(TABLE).await);
    assert!(items.contains("challenge#") && items.contains("grant#"));
    for mark in marks
        .iter()
        .map(String::as_str)
        .chain(["user-mark-1", "gmail.readonly"])
    {
        assert!(!items.contains(mark), "{mark} is in the table");
    }
    // Nor does the output, with everything logged.
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
async fn an_unavailable_table_is_reported_and_calls_recover() {
    let openid = OpenId::start();
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    proxy.create_table(TABLE).await;
    let instance = instance_with(&openid, &proxy.url(), |_| ());
    openid.allow_redirects_to(&instance.url).await;
    let client = client_of(&instance.url);
    let challenge = challenge_in(call(&client, "Gmail.GetEmails", "user-1").await);
    proxy.fail_with(400, "AccessDeniedException", "no");
    let outcome = call(&client, "Gmail.GetEmails", "user-1").await;
    assert!(
        outcome.message().contains("cannot ask the user"),
        "{outcome:?}"
    );
    proxy.open();
    allow(&challenge).await;
    let value = call(&client, "Gmail.GetEmails", "user-1").await;
    assert!(value.value().is_some());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's oidc-provider and moto; run tests/all"]
async fn keys_can_be_rotated() {
    let openid = OpenId::start();
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    proxy.create_table(TABLE).await;
    let with_keys = |keys: &str| {
        instance_with(&openid, &proxy.url(), |command| {
            command
                .env("OLD_KEY", KEY)
                .env("NEW_KEY", "another-key-of-this-server-0123456789")
                .env("TOOLS_OAUTH_KEY_IDS", keys);
        })
    };
    let get_emails = async |instance: &Instance| {
        call(&client_of(&instance.url), "Gmail.GetEmails", "user-1").await
    };
    let old = with_keys("OLD_KEY");
    openid.allow_redirects_to(&old.url).await;
    let challenge = challenge_in(get_emails(&old).await);
    allow(&challenge).await;
    for keys in ["OLD_KEY,NEW_KEY", "NEW_KEY,OLD_KEY"] {
        let outcome = get_emails(&with_keys(keys)).await;
        assert!(outcome.value().is_some(), "{keys}");
    }
    // Its use re-encrypted the grant with the new key.
    let outcome = get_emails(&with_keys("NEW_KEY")).await;
    assert!(outcome.value().is_some());
    // Without its key, a grant is treated as missing.
    challenge_in(get_emails(&with_keys("OLD_KEY")).await);
}
