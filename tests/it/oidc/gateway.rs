//! Callers whom API Gateway or IAM has authenticated.

use lambda_tools::Auth;
use serde_json::{Value, json};

use super::{event, respond, served};

async fn call_as(auth: Auth, tool: &str, authorizer: Value) -> (u16, Value) {
    let body = json!({"tool_id": tool, "input": {}});
    let mut event = event("POST", "/tools/call", None, &body);
    if !authorizer.is_null() {
        event["requestContext"]["authorizer"] = authorizer;
    }
    let response = respond(&served(auth), &event).await;
    (response.status, response.body)
}

#[expect(clippy::needless_pass_by_value, reason = "called with literals")]
fn jwt(claims: Value) -> Value {
    json!({"jwt": {"claims": claims, "scopes": null}})
}

const ISSUER: &str = "https://idp.example";

#[tokio::test]
async fn the_user_of_a_verified_token_is_the_user_of_the_call() {
    let claims = json!({
        "iss": ISSUER, "sub": "alice", "client_id": "app", "scope": "mail.read x",
        "groups": "staff",
    });
    let (status, body) = call_as(Auth::gateway(), "Mail.Read", jwt(claims)).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(
        body["value"],
        json!({
            "caller": format!("token {ISSUER} alice"),
            "namespace": format!("token {ISSUER}"),
            "user": "alice",
            "client": "app",
            "scopes": ["mail.read", "x"],
            "groups": ["staff"],
        })
    );
    let claims = json!({"iss": ISSUER, "sub": "alice", "scope": "x"});
    let (status, body) = call_as(Auth::gateway(), "Mail.Read", jwt(claims)).await;
    assert_eq!(status, 400, "{body}");
}

#[tokio::test]
async fn other_principals_are_callers_without_a_user() {
    for (authorizer, caller) in [
        (
            json!({"iam": {"userArn": "arn:aws:iam::1:user/ci"}}),
            "iam arn:aws:iam::1:user/ci",
        ),
        (json!({"lambda": {"principalId": "p"}}), "authorizer "),
    ] {
        let (status, body) = call_as(Auth::gateway(), "Who.AmI", authorizer).await;
        assert_eq!(status, 200, "{body}");
        let text = body["value"]["caller"].as_str().unwrap();
        assert!(text.starts_with(caller), "{text}");
        assert_eq!(body["value"]["user"], Value::Null);
    }
}

#[tokio::test]
async fn events_without_a_principal_are_rejected() {
    for authorizer in [
        Value::Null,
        json!({}),
        json!({"lambda": {}}),
        json!({"iam": {}}),
    ] {
        let (status, body) = call_as(Auth::gateway(), "Who.AmI", authorizer.clone()).await;
        assert_eq!(status, 401, "{authorizer} {body}");
    }
    // Headers that look like a principal are not read.
    let body = json!({"tool_id": "Who.AmI", "input": {}});
    let mut event = event("POST", "/tools/call", Some("x"), &body);
    event["headers"]["x-amzn-oidc-identity"] = "alice".into();
    event["headers"]["x-amzn-oidc-data"] = "e30.e30.e30".into();
    event["headers"]["x-amzn-lambda-authorizer"] = "alice".into();
    assert_eq!(respond(&served(Auth::gateway()), &event).await.status, 401);
}

#[tokio::test]
async fn other_credentials_can_be_accepted_beside_the_gateway() {
    let auth = || Auth::gateway().or(Auth::api_key_ids(["KEY"]));
    let (status, body) = call_as(auth(), "Who.AmI", jwt(json!({"iss": ISSUER, "sub": "a"}))).await;
    assert_eq!((status, &body["value"]["user"]), (200, &json!("a")));
    let body = json!({"tool_id": "Who.AmI", "input": {}});
    let event = event("POST", "/tools/call", Some("a-key"), &body);
    let response = respond(&served(auth()), &event).await;
    assert_eq!(response.body["value"]["caller"], "key KEY");
}

async fn call_over_rest(authorizer: Value) -> (u16, Value) {
    let mut event = test_support::lambda::event("sources/http-api.payload-1.0");
    event["body"] = json!({"tool_id": "Who.AmI", "input": {}})
        .to_string()
        .into();
    event["requestContext"]["authorizer"] = authorizer;
    let response = respond(&served(Auth::gateway()), &event).await;
    (response.status, response.body)
}

/// API Gateway sends these fields for routes without an authorizer.
#[tokio::test]
async fn an_authorizer_that_says_nothing_authenticates_nobody() {
    for authorizer in [
        json!({"claims": null, "scopes": null}),
        json!({"integrationLatency": 5}),
        json!({"claims": {}}),
        json!({"claims": {"sub": "alice"}}),
        json!({"principalId": ""}),
        Value::Null,
    ] {
        let (status, body) = call_over_rest(authorizer.clone()).await;
        assert_eq!(status, 401, "{authorizer} {body}");
    }
    for authorizer in [jwt(json!({})), json!({"lambda": {"x": null}})] {
        let (status, body) = call_as(Auth::gateway(), "Who.AmI", authorizer.clone()).await;
        assert_eq!(status, 401, "{authorizer} {body}");
    }
    let claims = json!({"claims": {"iss": ISSUER, "sub": "alice"}});
    let (status, body) = call_over_rest(claims).await;
    assert_eq!((status, &body["value"]["user"]), (200, &json!("alice")));
}

/// Without an issuer nobody knows whose user and whose scopes the claims mean.
#[tokio::test]
async fn claims_without_an_issuer_do_not_evade_scopes() {
    let claims = jwt(json!({"sub": "alice", "scope": "x"}));
    let (status, body) = call_as(Auth::gateway(), "Mail.Read", claims).await;
    assert_eq!(status, 401, "{body}");
}

/// API Gateway has not verified claims that a Lambda authorizer returns.
#[tokio::test]
async fn a_lambda_authorizer_cannot_return_the_claims_of_a_token() {
    let claims = json!({"iss": ISSUER, "sub": "alice"});
    let context = json!({"principalId": "p", "claims": claims});
    let (status, body) = call_as(
        Auth::gateway(),
        "Who.AmI",
        json!({"lambda": context.clone()}),
    )
    .await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["value"]["user"], Value::Null, "{body}");
    let (status, body) = call_over_rest(context).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["value"]["user"], Value::Null, "{body}");
}

/// RFC 6749, 3.3: a scope may contain a comma.
#[tokio::test]
async fn scopes_are_separated_by_spaces_only() {
    for (scope, status) in [
        ("mail.read,mail.send", 400),
        ("mail.read mail.send", 200),
        ("[mail.read mail.send]", 200),
    ] {
        let claims = jwt(json!({"iss": ISSUER, "sub": "alice", "scope": scope}));
        let (got, body) = call_as(Auth::gateway(), "Mail.Send", claims).await;
        assert_eq!(got, status, "{scope} {body}");
    }
}

/// API Gateway writes a list as one text, and a group may contain spaces, commas and brackets.
#[tokio::test]
async fn a_text_of_groups_is_not_separated() {
    for claim in ["groups", "cognito:groups"] {
        for text in ["[not admin]", "[staff]", "not,admin", "not admin"] {
            let mut claims = json!({"iss": ISSUER, "sub": "alice"});
            claims[claim] = text.into();
            let (_, body) = call_as(Auth::gateway(), "Who.AmI", jwt(claims.clone())).await;
            assert_eq!(body["value"]["groups"], json!([text]), "{claim}");
            let (_, body) = call_over_rest(json!({"claims": claims})).await;
            assert_eq!(body["value"]["groups"], json!([text]), "{claim}");
        }
    }
}
