//! What only Secrets Manager has: JSON secrets, bytes, and errors of single secrets in a response.

use lambda_tools::secrets::{Secrets, SecretsManager};
use serde_json::json;
use test_support::aws::Emulator;

use super::{PERMANENT, call, messages, revealing, value_or_detail};
use crate::aws::secrets_manager;

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn secrets_are_found_inside_json_and_in_bytes() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    let client = secrets_manager(&proxy);
    let inside = json!({"KEY": "inside", "PORT": 5432, "NESTED": {"a": [1]}, "NONE": null});
    proxy.put_secret("tools", &inside.to_string()).await;
    proxy.put_secret("no-json", "{").await;
    proxy.put_secret("list", "[]").await;
    // Bytes that are UTF-8, and bytes that are not.
    proxy.put_binary_secret("BYTES", "dGV4dA==").await;
    proxy.put_binary_secret("NO_TEXT", "//4=").await;
    let revealing = |inside: &str, id: &str| {
        let store = SecretsManager::new().client(client.clone());
        let is_inside = !inside.is_empty();
        let store = if is_inside { store.json(inside) } else { store };
        revealing(&[id], Secrets::from_store(store))
    };
    for (inside, id, value) in [
        ("tools", "KEY", "inside"),
        ("tools", "PORT", "5432"),
        ("tools", "NESTED", r#"{"a":[1]}"#),
        ("", "BYTES", "text"),
    ] {
        let router = revealing(inside, id);
        assert_eq!(value_or_detail(&router, "T.T").await, json!([value]));
        assert_eq!(proxy.take_requests().len(), 1);
    }
    for (inside, id, part) in [
        ("tools", "NONE", "in the key 'NONE' of the secret 'tools'"),
        ("tools", "OTHER", "in the key 'OTHER' of the secret"),
        ("nowhere", "KEY", "in the key 'KEY' of the secret"),
        ("no-json", "KEY", "not decodable: the secret 'no-json'"),
        ("list", "KEY", "'list' is not a JSON object"),
        ("", "NO_TEXT", "that are not UTF-8; store them as base64"),
    ] {
        let (status, body) = call(&revealing(inside, id), &json!({"tool_id": "T.T"})).await;
        let message = body["developer_message"].as_str().unwrap();
        assert_eq!(status, 400);
        assert!(message.contains(part), "{message}");
        let names_missing = body.get("missing_requirements").is_some();
        assert_eq!(names_missing, part.starts_with("in the"), "{body}");
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_denial_names_the_permission() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    let client = secrets_manager(&proxy);
    let store = || SecretsManager::new().client(client.clone());
    let each = || Secrets::from_store(store().prefix("prod/"));
    let json = || Secrets::from_store(store().json("tools"));

    let not_allowed = "User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform";
    proxy.fail_with(400, "AccessDeniedException", not_allowed);
    let (message, detail) = messages(each()).await;
    assert_eq!(message, PERMANENT);
    let allow = "allow secretsmanager:BatchGetSecretValue on *";
    assert!(detail.contains(allow), "{detail}");
    let (_, detail) = messages(json()).await;
    let allow = "allow secretsmanager:GetSecretValue on \
                 arn:aws:secretsmanager:us-east-1:*:secret:tools-??????";
    assert!(detail.contains(allow), "{detail}");
    let otherwise = "; if that is allowed, there is no such secret";
    assert!(detail.contains(otherwise), "{detail}");
    proxy.fail_with(400, "AccessDeniedException", "Access to KMS is not allowed");
    let (_, detail) = messages(json()).await;
    assert!(detail.contains("allow kms:Decrypt"), "{detail}");

    let one = |code: &str| {
        json!({"SecretValues": [], "Errors": [
            {"SecretId": "prod/KEY", "ErrorCode": code, "Message": not_allowed}]})
    };
    proxy.respond_with(200, one("AccessDeniedException"));
    let (_, detail) = messages(each()).await;
    let allow = "allow secretsmanager:GetSecretValue on \
                 arn:aws:secretsmanager:us-east-1:*:secret:prod/KEY-??????";
    assert!(detail.contains(allow), "{detail}");
    proxy.respond_with(200, one("InvalidRequestException"));
    let (message, _) = messages(each()).await;
    let missing = "Secrets required before this tool can be called";
    assert_eq!(message, missing, "marked for deletion");
}
