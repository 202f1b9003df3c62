//! Authentication with valid and invalid API keys.

use lambda_tools::{
    ApiKeys, Auth, Caller, Context, Failure, Server, Tool, Toolkit, secrets::Secrets,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{event, function};

/// Returns the caller.
#[derive(Deserialize, JsonSchema)]
struct WhoAmI {}

async fn who_am_i(_: WhoAmI, cx: Context) -> Result<String, Failure> {
    Ok(match cx.caller() {
        Caller::ApiKey { id } => format!("key {id}"),
        other => other.to_string(),
    })
}

/// Makes a call; returns the status, and the caller if the call was accepted.
async fn call_with(auth: impl Into<Auth>, headers: &[(&str, &str)]) -> (u16, Value) {
    let tool = Tool::new("Who.AmI@1.0.0", who_am_i);
    let keys = [
        ("ONE", "one"),
        ("TWO", " two\n"),
        ("EMPTY", ""),
        ("BLANK", " \n"),
    ];
    let server = Server::new(Toolkit::new([tool]).unwrap()).secrets(Secrets::fixed(keys));
    let server = server.auth(auth);
    let mut event: Value =
        serde_json::from_str(&event("POST", "/tools/call", r#"{"tool_id": "Who.AmI"}"#)).unwrap();
    for (name, value) in headers {
        event["headers"][*name] = json!(value);
    }
    let response = function(server).respond(&event.to_string()).await.unwrap();
    (response.status, response.body["value"].clone())
}

#[tokio::test]
async fn either_header_may_carry_a_key_and_its_id_is_the_caller() {
    let auth = || Auth::from(ApiKeys::with_ids(["ONE"])).or(ApiKeys::with_ids(["TWO"]));
    for (header, value, id) in [
        ("oxp-api-key", "one", "ONE"),
        ("oxp-api-key", "two", "TWO"),
        ("authorization", "Bearer one", "ONE"),
        ("authorization", "bearer  two ", "TWO"),
    ] {
        let result = call_with(auth(), &[(header, value)]).await;
        assert_eq!(result, (200, json!(format!("key {id}"))), "{value}");
    }
}

#[tokio::test]
async fn any_other_credential_is_rejected() {
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
        let auth = ApiKeys::with_ids(["ONE", "EMPTY", "BLANK", "NOWHERE"]);
        assert_eq!(
            call_with(auth, headers).await,
            (401, Value::Null),
            "{headers:?}"
        );
    }
}

#[tokio::test]
async fn missing_and_empty_keys_admit_no_caller() {
    let no_ids: [&str; 0] = [];
    for auth in [
        ApiKeys::with_ids(no_ids),
        ApiKeys::with_ids(["NOWHERE", "EMPTY"]),
    ] {
        for headers in [
            &[("oxp-api-key", "")][..],
            &[("authorization", "Bearer ")],
            &[],
        ] {
            assert_eq!(call_with(auth.clone(), headers).await.0, 401, "{headers:?}");
        }
    }
}
