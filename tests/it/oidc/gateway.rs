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

fn jwt(claims: Value) -> Value {
    json!({"jwt": {"claims": claims, "scopes": null}})
}

const ISSUER: &str = "https://idp.example";

#[tokio::test]
async fn the_user_of_a_verified_token_is_the_user_of_the_call() {
    let claims = json!({
        "iss": ISSUER, "sub": "alice", "client_id": "app", "scope": "mail.read x",
        "cognito:groups": "[staff admins]",
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
            "groups": ["staff", "admins"],
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
        (jwt(json!({"sub": "alice"})), "authorizer jwt  alice"),
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
