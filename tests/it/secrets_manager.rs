//! Secrets in AWS Secrets Manager: the real client against an emulator.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Router, body::Body};
use lambda_tools::{
    Context, Failure, Tool, Toolkit,
    secrets::{Secrets, SecretsManager},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::{
    assert_program,
    aws::{CREDENTIALS, Emulator},
    lambda::{event, invoke_on},
    program,
};
use tower::ServiceExt;

use crate::{aws::secrets_manager, support::server};

/// Returns a tool that returns its secrets, which no real tool should do.
fn revealing_tool(id: &'static str, secrets: &[&str]) -> Tool {
    /// Returns its secrets.
    #[derive(Deserialize, JsonSchema)]
    struct Reveal {}

    let ids: Arc<[String]> = secrets.iter().map(|&it| it.to_owned()).collect();
    let reveal = move |_: Reveal, cx: Context| {
        let ids = Arc::clone(&ids);
        async move {
            let mut values = Vec::new();
            for id in ids.iter() {
                values.push(cx.secret(id)?.expose().to_owned());
            }
            Ok::<_, Failure>(values)
        }
    };
    secrets
        .iter()
        .fold(Tool::new(id, reveal), |tool, &id| tool.secret(id))
}

fn router(tools: Vec<Tool>, secrets: Secrets) -> Router {
    let server = server(Toolkit::new(tools).unwrap()).secrets(secrets);
    server.into_router().unwrap()
}

async fn call(router: &Router, body: &Value) -> (u16, Value) {
    let request = axum::http::Request::post("/tools/call");
    let request = request.body(Body::from(body.to_string())).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), 1_000_000).await;
    (status, serde_json::from_slice(&body.unwrap()).unwrap())
}

/// Calls a tool. Returns its value, or the developer message of the rejection.
async fn value_or_detail(router: &Router, tool: &str) -> Value {
    let (status, body) = call(router, &json!({"tool_id": tool})).await;
    match status {
        200 => body["value"].clone(),
        _ => body["developer_message"].clone(),
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn secrets_are_found_by_id_with_a_prefix_and_inside_json() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    let client = secrets_manager(&proxy);
    proxy.put_secret("KEY", "by id").await;
    proxy.put_secret("prod/KEY", "with a prefix").await;
    let inside = json!({"KEY": "inside", "PORT": 5432, "NESTED": {"a": [1]}, "NONE": null});
    proxy.put_secret("prod/tools", &inside.to_string()).await;
    proxy.put_secret("prod/no-json", "{").await;
    proxy.put_secret("prod/list", "[]").await;
    // Bytes that are UTF-8, and bytes that are not.
    for (name, value) in [("BYTES", "dGV4dA=="), ("NO_TEXT", "//4=")] {
        proxy.put_binary_secret(name, value).await;
    }
    proxy.take_requests();
    let store = || SecretsManager::new().client(client.clone());
    let tools = |id| vec![revealing_tool("T.T@1.0.0", &[id])];
    let all = "T.T@1.0.0";

    for (store, id, value) in [
        (store(), "KEY", "by id"),
        (store().prefix("prod/"), "KEY", "with a prefix"),
        (store().json("prod/tools"), "KEY", "inside"),
        (store().json("prod/tools"), "PORT", "5432"),
        (store().json("prod/tools"), "NESTED", r#"{"a":[1]}"#),
        (store(), "BYTES", "text"),
    ] {
        let router = router(tools(id), Secrets::from_store(store));
        assert_eq!(value_or_detail(&router, all).await, json!([value]));
        assert_eq!(proxy.take_requests().len(), 1);
    }
    for (store, id, part) in [
        (
            store(),
            "NOWHERE",
            "in the secret 'NOWHERE' of AWS Secrets Manager",
        ),
        (
            store().prefix("test/"),
            "KEY",
            "in the secret 'test/KEY' of AWS",
        ),
        (
            store().json("prod/tools"),
            "NONE",
            "in the key 'NONE' of the secret 'prod/tools'",
        ),
        (
            store().json("prod/tools"),
            "OTHER",
            "in the key 'OTHER' of the secret",
        ),
        (
            store().json("prod/nowhere"),
            "KEY",
            "in the key 'KEY' of the secret",
        ),
        (
            store().json("prod/no-json"),
            "KEY",
            "not decodable: the secret 'prod/no-json'",
        ),
        (
            store().json("prod/list"),
            "KEY",
            "'prod/list' is not a JSON object",
        ),
        (
            store(),
            "NO_TEXT",
            "holds bytes that are not UTF-8; store them as base64",
        ),
    ] {
        let router = router(tools(id), Secrets::from_store(store));
        let (status, body) = call(&router, &json!({"tool_id": all})).await;
        let message = body["developer_message"].as_str().unwrap();
        assert_eq!(status, 400);
        assert!(message.contains(part), "{message}");
        let is_missing = part.starts_with("in the");
        assert_eq!(
            body.get("missing_requirements").is_some(),
            is_missing,
            "{body}"
        );
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_cold_cache_costs_one_request_for_twenty_ids() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    let client = secrets_manager(&proxy);
    let ids: Vec<String> = (0..40).map(|i| format!("ID_{i}")).collect();
    for id in &ids {
        proxy.put_secret(id, &format!("value of {id}")).await;
    }
    proxy.take_requests();
    let tools = ids.chunks(2).enumerate().map(|(i, ids)| {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        let id: &'static str = Box::leak(format!("T.T{i}@1.0.0").into_boxed_str());
        revealing_tool(id, &ids)
    });
    let store = SecretsManager::new().client(client);
    let router = router(tools.collect(), Secrets::from_store(store));
    let mut calls = tokio::task::JoinSet::new();
    for i in 0..1000 {
        let (router, tool) = (router.clone(), i % 20);
        calls.spawn(async move {
            let value = value_or_detail(&router, &format!("T.T{tool}@1.0.0")).await;
            let expected = [2 * tool, 2 * tool + 1].map(|i| format!("value of ID_{i}"));
            assert_eq!(value, json!(expected));
        });
    }
    calls.join_all().await;
    let requests = proxy.take_requests();
    let sizes = requests.iter().map(|(action, body)| {
        assert_eq!(action, "BatchGetSecretValue");
        body["SecretIdList"].as_array().unwrap().len()
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [20, 20]);
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn a_rotated_secret_is_read_after_the_cache_time() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    let client = secrets_manager(&proxy);
    proxy.put_secret("KEY", "old").await;
    let secrets = || Secrets::from_store(SecretsManager::new().client(client.clone()));
    let time = Duration::from_millis(700);
    let router = router(
        vec![revealing_tool("T.T@1.0.0", &["KEY"])],
        secrets().cache_for(time),
    );
    assert_eq!(value_or_detail(&router, "T.T").await, json!(["old"]));
    proxy.change_secret("KEY", "new").await;
    assert_eq!(value_or_detail(&router, "T.T").await, json!(["old"]));
    tokio::time::sleep(time).await;
    assert_eq!(value_or_detail(&router, "T.T").await, json!(["new"]));
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn each_kind_of_error_has_its_own_message() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    let client = secrets_manager(&proxy);
    proxy.put_secret("tools", "{}").await;
    let each = || SecretsManager::new().client(client.clone()).prefix("prod/");
    let json = || SecretsManager::new().client(client.clone()).json("tools");
    let messages_of = async |store: SecretsManager| {
        let tools = vec![revealing_tool("T.T@1.0.0", &["KEY"])];
        let router = router(tools, Secrets::from_store(store));
        let begun = Instant::now();
        let (status, body) = call(&router, &json!({"tool_id": "T.T"})).await;
        assert_eq!(status, 400, "{body}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        (text("message"), text("developer_message"))
    };
    let permanent = "The tool server cannot read a secret that this tool needs";
    let temporary = "The tool server is temporarily unavailable";

    let not_allowed = "User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform";
    proxy.fail_with(400, "AccessDeniedException", not_allowed);
    let (message, detail) = messages_of(each()).await;
    assert_eq!(message, permanent);
    assert!(
        detail.contains("allow secretsmanager:BatchGetSecretValue on *"),
        "{detail}"
    );
    let (_, detail) = messages_of(json()).await;
    let allow = "allow secretsmanager:GetSecretValue on \
                 arn:aws:secretsmanager:us-east-1:*:secret:tools-??????";
    assert!(detail.contains(allow), "{detail}");
    assert!(
        detail.contains("; if that is allowed, there is no such secret"),
        "{detail}"
    );
    proxy.fail_with(400, "AccessDeniedException", "Access to KMS is not allowed");
    let (_, detail) = messages_of(json()).await;
    assert!(detail.contains("allow kms:Decrypt"), "{detail}");

    let one = |code: &str| {
        json!({"SecretValues": [], "Errors": [
            {"SecretId": "prod/KEY", "ErrorCode": code, "Message": not_allowed}]})
    };
    proxy.respond_with(200, one("AccessDeniedException"));
    let (_, detail) = messages_of(each()).await;
    let allow = "allow secretsmanager:GetSecretValue on \
                 arn:aws:secretsmanager:us-east-1:*:secret:prod/KEY-??????";
    assert!(detail.contains(allow), "{detail}");
    proxy.respond_with(200, one("InvalidRequestException"));
    let (message, _) = messages_of(each()).await;
    assert_eq!(
        message, "Secrets required before this tool can be called",
        "marked for deletion"
    );

    for (status, code, what) in [
        (400, "ThrottlingException", "throttled: "),
        (500, "InternalServiceError", "the store is not available: "),
        (502, "", "the store is not available: "),
    ] {
        proxy.fail_with(status, code, "");
        let (message, detail) = messages_of(each()).await;
        assert_eq!(message, temporary, "{code}");
        assert!(detail.contains(what), "{detail}");
    }
    for (code, what) in [
        (
            "UnrecognizedClientException",
            "AWS does not accept the credentials",
        ),
        ("DecryptionFailure", "not decodable: "),
    ] {
        proxy.fail_with(400, code, "");
        let (message, detail) = messages_of(each()).await;
        assert_eq!(message, permanent);
        assert!(detail.contains(what), "{detail}");
    }
    proxy.respond_with(200, json!("nonsense"));
    let (message, _) = messages_of(each()).await;
    assert_eq!(message, temporary);
    proxy.open();
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn without_the_store_calls_use_cached_secrets() {
    let mut emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    let client = secrets_manager(&proxy);
    proxy.put_secret("KEY", "value").await;
    let time = Duration::from_millis(200);
    let secrets = || Secrets::from_store(SecretsManager::new().client(client.clone()));
    let tools = || vec![revealing_tool("T.T@1.0.0", &["KEY"])];
    let warm = router(tools(), secrets().cache_for(time));
    assert_eq!(value_or_detail(&warm, "T.T").await, json!(["value"]));
    emulator.stop();
    drop(proxy);
    tokio::time::sleep(time).await;
    let begun = Instant::now();
    assert_eq!(value_or_detail(&warm, "T.T").await, json!(["value"]));
    let cold = router(tools(), secrets());
    let detail = value_or_detail(&cold, "T.T").await;
    assert!(
        detail.as_str().unwrap().contains("cannot be reached"),
        "{detail}"
    );
    assert!(begun.elapsed() < Duration::from_secs(7));
}

/// A function whose tools need no secrets.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a program that tests start"]
async fn calculator_program_of_tests() {
    async fn add(_: Value) -> Result<Value, Failure> {
        Ok(json!(15))
    }

    assert_program();
    let object = json!({"type": "object"});
    let add = Tool::dynamic("Calculator.Add@1.0.0", "Adds.", object, json!({}), add);
    let toolkit = Toolkit::new([add.idempotent()]).unwrap();
    lambda_tools::serve(toolkit).await.unwrap();
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn unneeded_stores_get_no_requests() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    let mut function = program("secrets_manager::calculator_program_of_tests");
    let url = proxy.url();
    let settings = [
        ("AWS_ENDPOINT_URL", &*url),
        ("TOOLS_AUTH", "none"),
        ("TOOLS_SECRETS", "secrets-manager"),
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
    ];
    let environment = [&CREDENTIALS[..], &settings].concat();
    let events = [(event("calculator/add.header-form"), None)];
    let (reports, _) = invoke_on(&mut function, &events, &environment).await;
    assert_eq!(reports[0].1["statusCode"], 200);
    assert_eq!(proxy.take_actions(), [""; 0]);
}
