//! Authentication with valid and invalid API keys, beside the events in `events/authentication`.

use lambda_tools::{
    ApiKeys, Auth, Context, Failure, Tool, Toolkit, secrets::Secrets, testing::ExpectedResponse,
};
use serde_json::{Value, json};

use crate::support::{Nothing, function, post, server};

const ONE: &str = "one-0123456789ab";
const TWO: &str = "two-0123456789ab";

async fn who_am_i(_: Nothing, cx: Context) -> Result<String, Failure> {
    Ok(cx.caller().to_string())
}

async fn respond(
    auth: impl Into<Auth>,
    secrets: Secrets,
    headers: &[(&str, &str)],
) -> ExpectedResponse {
    let tool = Tool::new("Who.AmI@1.0.0", who_am_i);
    let server = server(Toolkit::new([tool]).unwrap()).secrets(secrets);
    let body = json!({"tool_id": "Who.AmI"});
    post(&function(server.auth(auth)), "/tools/call", headers, &body).await
}

/// Makes a call; returns the status, and the caller if the call was accepted.
async fn call_with(auth: impl Into<Auth>, headers: &[(&str, &str)]) -> (u16, Value) {
    let keys = Secrets::fixed([
        ("ONE", ONE),
        ("TWO", " two-0123456789ab\n"),
        ("SHORT", "short-012345678\n"),
        ("EMPTY", ""),
        ("BLANK", " \n"),
        ("SPACES", "                "),
    ]);
    let response = respond(auth, keys, headers).await;
    (response.status, response.body["value"].clone())
}

/// Either header may carry a key, whose id is the caller. While a key is replaced, the caller has
/// both, and stays the same caller: the first id names it.
#[tokio::test]
async fn the_first_id_names_the_caller_of_each_key() {
    for (ids, header, value, name) in [
        ("ONE", "oxp-api-key", ONE, "ONE"),
        ("ONE", "authorization", "Bearer one-0123456789ab", "ONE"),
        ("TWO", "authorization", "bearer  two-0123456789ab ", "TWO"),
        ("ONE|TWO", "oxp-api-key", ONE, "ONE"),
        ("ONE|TWO", "oxp-api-key", TWO, "ONE"),
        (" TWO | ONE ", "oxp-api-key", ONE, "TWO"),
        ("|NOWHERE||TWO|ONE|", "oxp-api-key", ONE, "NOWHERE"),
    ] {
        let auth = Auth::from(ApiKeys::with_ids(["|", ""])).or(ApiKeys::with_ids([ids]));
        let result = call_with(auth, &[(header, value)]).await;
        assert_eq!(result, (200, json!(format!("key {name}"))), "{ids} {value}");
    }
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
        &[("authorization", ONE)],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Basic one-0123456789ab")],
        &[("authorization", "é")],
        &[("authorization", "Beareré one-0123456789ab")],
        // The first header decides.
        &[
            ("oxp-api-key", "wrong"),
            ("authorization", "Bearer one-0123456789ab"),
        ],
    ] {
        let ids = ["ONE", "SHORT", "EMPTY", "BLANK", "SPACES", "NOWHERE"];
        for ids in [&ids[..], &ids[2..], &["|", ""], &[]] {
            let seen = call_with(ApiKeys::with_ids(ids.to_vec()), headers).await;
            assert_eq!(seen, (401, Value::Null), "{ids:?} {headers:?}");
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

    const SECRET: &str = "a-signing-secret-0123456789abcdefgh";

    /// Has two secrets, and cannot read others.
    struct HalfDown;

    impl SecretStore for HalfDown {
        fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
            let read = |id: &String| match &**id {
                "KEY" => Ok(Some(Secret::from(ONE))),
                "SIGNING" => Ok(Some(Secret::from(SECRET))),
                _ => Err(StoreError::unavailable("it is down")),
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
        let bearer = |secret: &str, exp: u64| {
            let token = sign_with_secret(secret, &json!({"sub": "alice", "exp": exp}));
            format!("Bearer {token}")
        };
        let of_another = bearer(&SECRET.replace('a', "b"), NOW + 60);
        for (header, value, status) in [
            ("oxp-api-key", ONE.to_owned(), 200),
            ("oxp-api-key", TWO.to_owned(), 400),
            ("authorization", bearer(SECRET, NOW + 60), 200),
            ("authorization", of_another, 400),
            // Signed, and not valid: no other secret can change that.
            ("authorization", bearer(SECRET, NOW - 60), 401),
        ] {
            let keys = ApiKeys::with_ids(["DOWN", "KEY"]);
            let auth = Auth::from(keys).or(Jwt::with_secret_ids(["SIGNING", "DOWN"]));
            let secrets = Secrets::from_store(HalfDown);
            let response = respond(auth, secrets, &[(header, &value)]).await;
            assert_eq!(response.status, status, "{header} {response:?}");
            let waits = response.headers.contains_key("retry-after");
            assert_eq!(waits, status == 400, "{response:?}");
        }
    }
}
