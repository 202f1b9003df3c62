//! Callers whom API Gateway or IAM has authenticated, beside the events in `events/platform`.

use lambda_tools::{ApiKeys, Gateway};
use test_support::lambda;

use super::*;

const ISSUER: &str = "https://idp.example";

async fn call(auth: impl Into<Auth>, mut event: Value, tool: &str) -> (u16, Value) {
    event["body"] = json!({"tool_id": tool, "input": {}}).to_string().into();
    let response = respond(&served(auth), &event).await;
    (response.status, response.body)
}

/// Calls a tool through an HTTP API.
async fn call_as(auth: impl Into<Auth>, tool: &str, authorizer: &Value) -> (u16, Value) {
    let mut event = event("POST", "/tools/call", None, &Value::Null);
    if !authorizer.is_null() {
        event["requestContext"]["authorizer"] = authorizer.clone();
    }
    call(auth, event, tool).await
}

/// Calls a tool through a REST API.
async fn call_over_rest(authorizer: &Value) -> (u16, Value) {
    let mut event = lambda::event("sources/http-api.payload-1.0");
    event["requestContext"]["authorizer"] = authorizer.clone();
    call(Gateway, event, "Who.AmI").await
}

/// Claims that a JWT authorizer of an HTTP API has verified.
fn jwt(claims: &Value) -> Value {
    json!({"jwt": {"claims": claims, "scopes": null}})
}

#[tokio::test]
async fn the_user_of_a_verified_token_is_the_user_of_the_call() {
    let claims = json!({
        "iss": ISSUER, "sub": "alice", "client_id": "app", "scope": "mail.read x",
        "groups": "staff",
    });
    let auth = || Auth::from(Gateway).or(ApiKeys::with_ids(["KEY"]));
    let (status, body) = call_as(auth(), "Mail.Read", &jwt(&claims)).await;
    assert_eq!(status, 200, "{body}");
    let expected = json!({
        "caller": format!("token {ISSUER} alice"),
        "namespace": format!("token {ISSUER}"),
        "user": "alice",
        "client": "app",
        "scopes": ["mail.read", "x"],
        "groups": ["staff"],
    });
    assert_eq!(body["value"], expected);
    let key = Some("a-key-0123456789");
    let event = event("POST", "/tools/call", key, &Value::Null);
    let (_, body) = call(auth(), event, "Who.AmI").await;
    assert_eq!(body["value"]["caller"], "key KEY");
}

/// Different principals are different callers, and the same one is the same in each request.
#[tokio::test]
async fn the_caller_is_named_by_what_lasts_in_its_identity() {
    let caller_of = async |authorizer: &Value| {
        let (status, body) = call_as(Auth::none(), "Who.AmI", authorizer).await;
        assert_eq!(status, 200, "{authorizer} {body}");
        body["value"]["caller"].as_str().unwrap().to_owned()
    };
    let of_token = |issuer: &str, subject: &str| jwt(&json!({"iss": issuer, "sub": subject}));
    let of_lambda = json!({"lambda": {"principalId": "", "sub": "s"}});
    let nobody = json!({"identityId": "", "amr": []});
    let of_role = json!({"iam": {"userArn": "arn", "cognitoIdentity": nobody}});
    let of_client = jwt(&json!({"iss": ISSUER, "client_id": "c"}));
    for (authorizer, caller) in [
        (of_role, "iam arn"),
        (of_client, "authorizer client https://idp.example c"),
        (of_token("a b", "c"), "authorizer jwt a%20b c"),
        (of_token("a", "b c"), "authorizer jwt a b%20c"),
        (of_token("a", "b%20c"), "authorizer jwt a b%2520c"),
        (of_lambda, "authorizer lambda s"),
    ] {
        assert_eq!(caller_of(&authorizer).await, caller, "{authorizer}");
    }
    let hashed = caller_of(&json!({"lambda": {"team": "x"}})).await;
    assert!(hashed.starts_with("authorizer hash "), "{hashed}");
    let changing = ["auth_time", "exp", "iat", "integrationLatency"];
    for name in [&changing[..], &["jti", "nbf", "origin_jti", "requestId"]].concat() {
        let same = caller_of(&json!({"lambda": {"team": "x", name: "5"}})).await;
        assert_eq!(same, hashed, "{name}");
    }
    for other in [
        json!({"team": "y"}),
        json!({"Team": "x"}),
        json!({"team": "x", "role": "admin"}),
        json!({"team": ["x"]}),
    ] {
        let caller = caller_of(&json!({"lambda": other})).await;
        assert_ne!(caller, hashed, "{other}");
    }
    // All users of an identity pool share a role.
    let mut event = lambda::event("sources/http-api.payload-1.0");
    let identity = &mut event["requestContext"]["identity"];
    identity["userArn"] = "arn".into();
    identity["cognitoIdentityId"] = "eu:1".into();
    let (_, body) = call(Gateway, event, "Who.AmI").await;
    assert_eq!(body["value"]["caller"], "iam arn eu:1");
}

/// API Gateway has not verified claims that a Lambda authorizer returns.
#[tokio::test]
async fn a_principal_of_a_lambda_authorizer_is_a_caller_without_a_user() {
    let claims = json!({"iss": ISSUER, "sub": "alice"});
    let context = json!({"principalId": "p", "claims": claims});
    let over_http = json!({"lambda": context});
    for (status, body) in [
        call_as(Gateway, "Who.AmI", &over_http).await,
        call_over_rest(&context).await,
    ] {
        let seen = (status, &body["value"]["user"]);
        assert_eq!(seen, (200, &Value::Null), "{body}");
    }
}

/// API Gateway sends some of these fields for routes without an authorizer. Without an issuer, nobody
/// knows whose user and whose scopes the claims mean.
#[tokio::test]
async fn an_authorizer_that_says_nothing_authenticates_nobody() {
    for authorizer in [
        Value::Null,
        json!({}),
        json!({"iam": {}}),
        jwt(&json!({})),
        jwt(&json!({"sub": "alice", "scope": "x"})),
        json!({"lambda": {"x": null}}),
    ] {
        let (status, body) = call_as(Gateway, "Mail.Read", &authorizer).await;
        assert_eq!(status, 401, "{authorizer} {body}");
    }
    for authorizer in [
        json!({"claims": null, "scopes": null}),
        json!({"integrationLatency": 5}),
        json!({"claims": {"sub": "alice"}}),
        json!({"principalId": ""}),
        Value::Null,
    ] {
        let (status, body) = call_over_rest(&authorizer).await;
        assert_eq!(status, 401, "{authorizer} {body}");
    }
    let (status, _) = call_over_rest(&json!({"claims": {"iss": ISSUER, "sub": "alice"}})).await;
    assert_eq!(status, 200);
}

/// RFC 6749, 3.3: a scope may contain a comma. API Gateway writes a list as one text, and a group may
/// contain spaces, commas and brackets.
#[tokio::test]
async fn scopes_are_separated_by_spaces_only_and_groups_are_not_separated() {
    for (scope, status) in [
        ("x", 400),
        ("mail.read,mail.send", 400),
        ("mail.read mail.send", 200),
        ("[mail.read mail.send]", 200),
    ] {
        let claims = json!({"iss": ISSUER, "sub": "alice", "scope": scope});
        let (got, body) = call_as(Gateway, "Mail.Send", &jwt(&claims)).await;
        assert_eq!(got, status, "{scope} {body}");
    }
    for text in ["[not admin]", "[staff]", "not,admin", "not admin"] {
        let claims = json!({"iss": ISSUER, "sub": "alice", "cognito:groups": text});
        let (_, body) = call_as(Gateway, "Who.AmI", &jwt(&claims)).await;
        assert_eq!(body["value"]["groups"], json!([text]));
        let (_, body) = call_over_rest(&json!({"claims": claims})).await;
        assert_eq!(body["value"]["groups"], json!([text]));
    }
}
