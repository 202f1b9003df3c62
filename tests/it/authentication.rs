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
        ("ONE", "one-0123456789ab"),
        ("TWO", " two-0123456789ab\n"),
        ("SHORT", "short-012345678\n"),
        ("EMPTY", ""),
        ("BLANK", " \n"),
        ("SPACES", "                "),
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
        ("oxp-api-key", "one-0123456789ab", "ONE"),
        ("oxp-api-key", "two-0123456789ab", "TWO"),
        ("authorization", "Bearer one-0123456789ab", "ONE"),
        ("authorization", "bearer  two-0123456789ab ", "TWO"),
    ] {
        let result = call_with(auth(), &[(header, value)]).await;
        assert_eq!(result, (200, json!(format!("key {id}"))), "{value}");
    }
}

/// While a key is replaced, the caller has both, and stays the same caller.
#[tokio::test]
async fn the_first_id_names_the_caller_of_each_key() {
    for (ids, name) in [
        ("ONE|TWO", "ONE"),
        (" TWO | ONE ", "TWO"),
        ("|NOWHERE||TWO|ONE|", "NOWHERE"),
    ] {
        for key in ["one-0123456789ab", "two-0123456789ab"] {
            let result = call_with(ApiKeys::with_ids([ids]), &[("oxp-api-key", key)]).await;
            assert_eq!(result, (200, json!(format!("key {name}"))), "{ids} {key}");
        }
    }
    let headers = [("oxp-api-key", "one-0123456789ab")];
    assert_eq!(
        call_with(ApiKeys::with_ids(["|", ""]), &headers).await.0,
        401
    );
}

#[tokio::test]
async fn any_other_credential_is_rejected() {
    for headers in [
        &[][..],
        &[("oxp-api-key", "")],
        &[("oxp-api-key", "one-0123456789a")],
        &[("oxp-api-key", "one-0123456789abc")],
        &[("oxp-api-key", "One-0123456789ab")],
        &[("oxp-api-key", "ONE")],
        &[("oxp-api-key", "one-0123456789ab,one-0123456789ab")],
        // It has fewer than 16 bytes.
        &[("oxp-api-key", "short-012345678")],
        &[("authorization", "one-0123456789ab")],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Basic one-0123456789ab")],
        &[("authorization", "é")],
        &[("authorization", "Beareré one-0123456789ab")],
        &[
            ("oxp-api-key", "wrong"),
            ("authorization", "Bearer one-0123456789ab"),
        ],
    ] {
        let auth = ApiKeys::with_ids(["ONE", "SHORT", "EMPTY", "BLANK", "NOWHERE"]);
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
        ApiKeys::with_ids(["NOWHERE", "EMPTY", "BLANK", "SPACES"]),
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

/// A store of which some secrets cannot be read.
#[cfg(feature = "jwt")]
mod half_down {
    use std::future::ready;

    use lambda_tools::{
        Jwt, Secret, StoreError,
        secrets::{ReadFuture, SecretStore},
    };
    use test_support::issuer::{NOW, sign_with_secret};

    use super::*;

    /// Has these secrets, and cannot read others.
    struct HalfDown(&'static [(&'static str, &'static str)]);

    impl SecretStore for HalfDown {
        fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
            let read = |id: &String| match self.0.iter().find(|(it, _)| it == id) {
                Some((_, value)) => Ok(Some(Secret::from(*value))),
                None => Err(StoreError::unavailable("it is down")),
            };
            Box::pin(ready(ids.iter().map(read).collect()))
        }

        fn location(&self, _: &str) -> String {
            "the store".to_owned()
        }
    }

    /// Only a credential that an unreadable secret may accept has to wait for it.
    #[tokio::test]
    async fn what_a_readable_secret_decides_does_not_wait_for_another_one() {
        const SECRET: &str = "a-signing-secret-0123456789abcdefgh";
        let token =
            |secret: &str, exp: u64| sign_with_secret(secret, &json!({"sub": "alice", "exp": exp}));
        let (valid, expired) = (token(SECRET, NOW + 60), token(SECRET, NOW - 60));
        let of_another = token(&SECRET.replace('a', "b"), NOW + 60);
        let auth = || {
            Auth::from(ApiKeys::with_ids(["DOWN", "KEY"]))
                .or(Jwt::with_secret_ids(["SIGNING", "DOWN"]))
        };
        for (header, value, status) in [
            ("oxp-api-key", "one-0123456789ab", 200),
            ("oxp-api-key", "two-0123456789ab", 400),
            ("authorization", &format!("Bearer {valid}"), 200),
            ("authorization", &format!("Bearer {of_another}"), 400),
            // Signed, and not valid: no other secret can change that.
            ("authorization", &format!("Bearer {expired}"), 401),
        ] {
            let tool = Tool::new("Who.AmI@1.0.0", who_am_i);
            let store = HalfDown(&[("KEY", "one-0123456789ab"), ("SIGNING", SECRET)]);
            let server = Server::new(Toolkit::new([tool]).unwrap()).auth(auth());
            let server = server.secrets(Secrets::from_store(store));
            let mut event: Value =
                serde_json::from_str(&event("POST", "/tools/call", r#"{"tool_id": "Who.AmI"}"#))
                    .unwrap();
            event["headers"][header] = value.into();
            let response = function(server).respond(&event.to_string()).await.unwrap();
            assert_eq!(response.status, status, "{header} {response:?}");
            let waits = response.headers.contains_key("retry-after");
            assert_eq!(waits, status == 400, "{response:?}");
        }
    }
}
