//! Callers whom API Gateway or IAM has authenticated.

use lambda_tools::{ApiKeys, Auth, Gateway};
use serde_json::{Value, json};

use super::{event, respond, served};

const ISSUER: &str = "https://idp.example";

/// Calls a tool through an HTTP API.
async fn call_as(auth: impl Into<Auth>, tool: &str, authorizer: &Value) -> (u16, Value) {
    let body = json!({"tool_id": tool, "input": {}});
    let mut event = event("POST", "/tools/call", None, &body);
    if !authorizer.is_null() {
        event["requestContext"]["authorizer"] = authorizer.clone();
    }
    let response = respond(&served(auth), &event).await;
    (response.status, response.body)
}

/// Calls a tool through a REST API.
async fn call_over_rest(authorizer: &Value) -> (u16, Value) {
    let mut event = test_support::lambda::event("sources/http-api.payload-1.0");
    let body = json!({"tool_id": "Who.AmI", "input": {}});
    event["body"] = body.to_string().into();
    event["requestContext"]["authorizer"] = authorizer.clone();
    let response = respond(&served(Gateway::new()), &event).await;
    (response.status, response.body)
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
    let (status, body) = call_as(Gateway::new(), "Mail.Read", &jwt(&claims)).await;
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
}

/// API Gateway has not verified claims that a Lambda authorizer returns.
#[tokio::test]
async fn other_principals_are_callers_without_a_user() {
    let claims = json!({"iss": ISSUER, "sub": "alice"});
    let context = json!({"principalId": "p", "claims": claims});
    let calls = [
        json!({"iam": {"userArn": "arn:aws:iam::1:user/ci"}}),
        json!({"lambda": {"principalId": "p"}}),
        json!({"lambda": context}),
    ];
    for authorizer in calls {
        let (status, body) = call_as(Gateway::new(), "Who.AmI", &authorizer).await;
        let seen = (status, &body["value"]["user"]);
        assert_eq!(seen, (200, &Value::Null), "{authorizer} {body}");
    }
    let (status, body) = call_over_rest(&context).await;
    assert_eq!((status, &body["value"]["user"]), (200, &Value::Null));
}

/// API Gateway sends some of these fields for routes without an authorizer. Without an issuer, nobody
/// knows whose user and whose scopes the claims mean.
#[tokio::test]
async fn an_authorizer_that_says_nothing_authenticates_nobody() {
    for authorizer in [
        Value::Null,
        json!({}),
        json!({"lambda": {}}),
        json!({"iam": {}}),
        jwt(&json!({})),
        jwt(&json!({"sub": "alice", "scope": "x"})),
        json!({"lambda": {"x": null}}),
    ] {
        let (status, body) = call_as(Gateway::new(), "Mail.Read", &authorizer).await;
        assert_eq!(status, 401, "{authorizer} {body}");
    }
    for authorizer in [
        json!({"claims": null, "scopes": null}),
        json!({"integrationLatency": 5}),
        json!({"claims": {}}),
        json!({"claims": {"sub": "alice"}}),
        json!({"principalId": ""}),
        Value::Null,
    ] {
        let (status, body) = call_over_rest(&authorizer).await;
        assert_eq!(status, 401, "{authorizer} {body}");
    }
    let (status, _) = call_over_rest(&json!({"claims": {"iss": ISSUER, "sub": "alice"}})).await;
    assert_eq!(status, 200);
    // Headers that look like a principal are not read.
    let body = json!({"tool_id": "Who.AmI", "input": {}});
    let mut event = event("POST", "/tools/call", Some("x"), &body);
    event["headers"]["x-amzn-oidc-identity"] = "alice".into();
    event["headers"]["x-amzn-oidc-data"] = "e30.e30.e30".into();
    event["headers"]["x-amzn-lambda-authorizer"] = "alice".into();
    assert_eq!(respond(&served(Gateway::new()), &event).await.status, 401);
}

#[tokio::test]
async fn other_credentials_can_be_accepted_beside_the_gateway() {
    let auth = || Auth::from(Gateway::new()).or(ApiKeys::with_ids(["KEY"]));
    let claims = json!({"iss": ISSUER, "sub": "a"});
    let (status, body) = call_as(auth(), "Who.AmI", &jwt(&claims)).await;
    assert_eq!((status, &body["value"]["user"]), (200, &json!("a")));
    let body = json!({"tool_id": "Who.AmI", "input": {}});
    let event = event("POST", "/tools/call", Some("a-key-0123456789"), &body);
    let response = respond(&served(auth()), &event).await;
    assert_eq!(response.body["value"]["caller"], "key KEY");
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
        let (got, body) = call_as(Gateway::new(), "Mail.Send", &jwt(&claims)).await;
        assert_eq!(got, status, "{scope} {body}");
    }
    for text in ["[not admin]", "[staff]", "not,admin", "not admin"] {
        let claims = json!({"iss": ISSUER, "sub": "alice", "cognito:groups": text});
        let (_, body) = call_as(Gateway::new(), "Who.AmI", &jwt(&claims)).await;
        assert_eq!(body["value"]["groups"], json!([text]));
        let (_, body) = call_over_rest(&json!({"claims": claims})).await;
        assert_eq!(body["value"]["groups"], json!([text]));
    }
}
