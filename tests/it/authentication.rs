//! Who may call: API keys, in every way to get them wrong.

use lambda_tools::{Auth, Caller, Context, Failure, Server, Tool, Toolkit, secrets::Secrets};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{event, function};

/// Says who calls.
#[derive(Deserialize, JsonSchema)]
struct WhoAmI {}

async fn who_am_i(_: WhoAmI, cx: Context) -> Result<String, Failure> {
    Ok(match cx.caller() {
        Caller::ApiKey { id } => format!("the one with {id}"),
        other => other.to_string(),
    })
}

/// The status, and who called where that was allowed.
async fn calls(auth: Option<Auth>, headers: &[(&str, &str)]) -> (u16, Value) {
    let tool = Tool::new("Who.AmI@1.0.0", who_am_i);
    let keys = [
        ("ONE", "one"),
        ("TWO", " two\n"),
        ("EMPTY", ""),
        ("BLANK", " \n"),
    ];
    let server = Server::new(Toolkit::new([tool]).unwrap()).secrets(Secrets::fixed(keys));
    let server = match auth {
        Some(auth) => server.auth(auth),
        None => server,
    };
    let mut event: Value =
        serde_json::from_str(&event("POST", "/tools/call", r#"{"tool_id": "Who.AmI"}"#)).unwrap();
    for (name, value) in headers {
        event["headers"][*name] = json!(value);
    }
    let answer = function(server).answer(&event.to_string()).await.unwrap();
    (answer.status, answer.body["value"].clone())
}

#[tokio::test]
async fn a_key_is_taken_in_either_header_and_says_who_calls() {
    let auth = || Some(Auth::api_key_ids(["ONE"]).or(Auth::api_key_ids(["TWO"])));
    for (header, value, id) in [
        ("oxp-api-key", "one", "ONE"),
        ("oxp-api-key", "two", "TWO"),
        ("authorization", "Bearer one", "ONE"),
        ("authorization", "bearer  two ", "TWO"),
    ] {
        let called = calls(auth(), &[(header, value)]).await;
        assert_eq!(
            called,
            (200, json!(format!("the one with {id}"))),
            "{value}"
        );
    }
}

#[tokio::test]
async fn anything_else_is_refused() {
    for headers in [
        &[][..],
        &[("oxp-api-key", "")],
        &[("oxp-api-key", "on")],
        &[("oxp-api-key", "One")],
        &[("oxp-api-key", "ONE")],
        &[("oxp-api-key", "one,one")],
        &[("authorization", "one")],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Basic one")],
        &[("authorization", "é")],
        &[("authorization", "Beareré one")],
        &[("oxp-api-key", "wrong"), ("authorization", "Bearer one")],
    ] {
        let auth = Auth::api_key_ids(["ONE", "EMPTY", "BLANK", "NOWHERE"]);
        assert_eq!(
            calls(Some(auth), headers).await,
            (401, Value::Null),
            "{headers:?}"
        );
    }
}

#[tokio::test]
async fn keys_that_are_not_there_let_nobody_in() {
    let none: [&str; 0] = [];
    for auth in [
        Auth::api_key_ids(none),
        Auth::api_key_ids(["NOWHERE", "EMPTY"]),
    ] {
        for headers in [
            &[("oxp-api-key", "")][..],
            &[("authorization", "Bearer ")],
            &[],
        ] {
            assert_eq!(
                calls(Some(auth.clone()), headers).await.0,
                401,
                "{headers:?}"
            );
        }
    }
}

#[tokio::test]
async fn without_authentication_no_header_matters() {
    for auth in [None, Some(Auth::none())] {
        for headers in [&[][..], &[("authorization", "x")], &[("oxp-api-key", "x")]] {
            let called = calls(auth.clone(), headers).await;
            assert_eq!(called, (200, json!("anyone")));
        }
    }
}
