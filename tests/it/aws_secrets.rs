//! Secrets in AWS Secrets Manager and in Parameter Store: the real clients against an emulator.
//!
//! The first tests apply to both services. Others are about what only Secrets Manager has: JSON
//! secrets, bytes, and errors of single secrets in a response.

mod parameter_store;

use std::future::ready;

use axum::Router;
use lambda_tools::{
    Context, Failure, Tool, Toolkit,
    secrets::{ParameterStore, Secrets, SecretsManager},
};
use serde_json::{Value, json};
use test_support::aws::{AwsProxy, emulated};

use crate::{
    aws,
    support::{Nothing, send, server},
};

const PERMANENT: &str = "The tool server cannot read a secret that this tool needs";
const TEMPORARY: &str = "The tool server is temporarily unavailable";

#[derive(Clone, Copy, Debug)]
enum Service {
    SecretsManager,
    ParameterStore,
}

const BOTH: [Service; 2] = [Service::SecretsManager, Service::ParameterStore];

impl Service {
    fn secrets(self, proxy: &AwsProxy, prefix: &str) -> Secrets {
        match self {
            Self::SecretsManager => {
                let store = SecretsManager::new().prefix(prefix);
                Secrets::from_store(store.client(aws::secrets_manager(proxy)))
            }
            Self::ParameterStore => {
                let store = ParameterStore::new().prefix(prefix);
                Secrets::from_store(store.client(aws::parameter_store(proxy)))
            }
        }
    }

    async fn put(self, proxy: &AwsProxy, name: &str, value: &str) {
        match self {
            Self::SecretsManager => proxy.put_secret(name, value).await,
            Self::ParameterStore => proxy.put_parameter(name, "SecureString", value).await,
        }
    }

    /// Returns a name with slashes in the form of the service.
    fn path(self, path: &str) -> String {
        match self {
            Self::SecretsManager => path.to_owned(),
            Self::ParameterStore => format!("/{path}"),
        }
    }

    /// Returns the place of a secret in messages.
    fn place(self, name: &str) -> String {
        match self {
            Self::SecretsManager => format!("the secret '{name}' of AWS Secrets Manager"),
            Self::ParameterStore => {
                format!("the parameter '{name}' of AWS Systems Manager Parameter Store")
            }
        }
    }

    /// Returns the number of names in each request since the previous call.
    fn take_batches(self, proxy: &AwsProxy) -> Vec<usize> {
        let (expected, field) = match self {
            Self::SecretsManager => ("BatchGetSecretValue", "SecretIdList"),
            Self::ParameterStore => ("GetParameters", "Names"),
        };
        let requests = proxy.take_requests().into_iter();
        let sizes = requests.map(|(action, body)| {
            assert_eq!(action, expected);
            body[field].as_array().unwrap().len()
        });
        sizes.collect()
    }
}

/// Returns a tool that returns its secrets, which no real tool should do.
fn revealing_tool(id: &'static str, secrets: &[&str]) -> Tool {
    let ids: Vec<_> = secrets.iter().map(|&it| it.to_owned()).collect();
    let reveal = move |_: Nothing, cx: Context| {
        let value = |id: &String| cx.secret(id).map(|it| it.expose().to_owned());
        ready(ids.iter().map(value).collect::<Result<Vec<_>, Failure>>())
    };
    secrets
        .iter()
        .fold(Tool::new(id, reveal), |tool, &id| tool.secret(id))
}

fn router(tools: Vec<Tool>, secrets: Secrets) -> Router {
    let server = server(Toolkit::new(tools).unwrap()).secrets(secrets);
    server.into_router().unwrap()
}

/// Returns a router with the tool `T.T`, which reveals these secrets.
fn revealing(ids: &[&str], secrets: Secrets) -> Router {
    router(vec![revealing_tool("T.T@1.0.0", ids)], secrets)
}

async fn call(router: &Router, body: &Value) -> (u16, Value) {
    let response = send(router, "POST", "/tools/call", &[], body.to_string()).await;
    (response.status, response.json())
}

/// Calls a tool. Returns its value, or the developer message of the rejection.
async fn value_or_detail(router: &Router, tool: &str) -> Value {
    let (status, body) = call(router, &json!({"tool_id": tool})).await;
    match status {
        200 => body["value"].clone(),
        _ => body["developer_message"].clone(),
    }
}

/// Calls a tool with the secret `KEY`, which cannot be read. Returns the messages for the caller and
/// for the developer.
async fn messages(secrets: Secrets) -> (String, String) {
    let router = revealing(&["KEY"], secrets);
    let (status, body) = call(&router, &json!({"tool_id": "T.T"})).await;
    assert_eq!(status, 400, "{body}");
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    (text("message"), text("developer_message"))
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn secrets_are_found_by_id_and_with_a_prefix() {
    let (_emulator, proxy) = emulated().await;
    for service in BOTH {
        let prefix = service.path("prod/");
        service.put(&proxy, "KEY", "by id").await;
        let name = service.path("prod/KEY");
        service.put(&proxy, &name, "with a prefix").await;
        for (prefix, value) in [("", "by id"), (&*prefix, "with a prefix")] {
            let router = revealing(&["KEY"], service.secrets(&proxy, prefix));
            assert_eq!(value_or_detail(&router, "T.T").await, json!([value]));
            assert_eq!(service.take_batches(&proxy), [1]);
        }
        for (prefix, id) in [("", "NOWHERE"), (&*service.path("test/"), "KEY")] {
            let router = revealing(&[id], service.secrets(&proxy, prefix));
            let (status, body) = call(&router, &json!({"tool_id": "T.T"})).await;
            assert_eq!(status, 400);
            let message = body["developer_message"].as_str().unwrap();
            let place = format!("in {}", service.place(&format!("{prefix}{id}")));
            assert!(message.contains(&place), "{message}");
            assert!(body.get("missing_requirements").is_some(), "{body}");
            proxy.take_requests();
        }
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn each_kind_of_error_has_its_own_message() {
    let (_emulator, proxy) = emulated().await;
    for service in BOTH {
        let secrets = || service.secrets(&proxy, &service.path("prod/"));
        let (undecryptable, failed) = match service {
            Service::SecretsManager => ("DecryptionFailure", "InternalServiceError"),
            Service::ParameterStore => ("InvalidKeyId", "InternalServerError"),
        };
        let unknown = "AWS does not accept the credentials";
        for (status, code, message, what) in [
            (400, "ThrottlingException", TEMPORARY, "throttled: "),
            (500, failed, TEMPORARY, "the store is not available: "),
            (502, "", TEMPORARY, "the store is not available: "),
            (400, "UnrecognizedClientException", PERMANENT, unknown),
            (400, undecryptable, PERMANENT, "not decodable: "),
            (400, "ValidationException", PERMANENT, "does not accept "),
        ] {
            proxy.fail_with(status, code, "");
            let (for_caller, detail) = messages(secrets()).await;
            assert_eq!(for_caller, message, "{service:?}: {code}");
            assert!(detail.contains(what), "{service:?}: {detail}");
        }
        proxy.respond_with(200, json!("nonsense"));
        assert_eq!(messages(secrets()).await.0, TEMPORARY, "{service:?}");
        proxy.respond_with(200, json!({}));
        let (for_caller, detail) = messages(secrets()).await;
        assert_eq!(for_caller, TEMPORARY, "{service:?}");
        assert!(detail.contains(" returned no result for it"), "{detail}");
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn an_invalid_name_does_not_affect_others() {
    let (_emulator, proxy) = emulated().await;
    for service in BOTH {
        service.put(&proxy, "KEY", "value").await;
        let tools = vec![
            revealing_tool("T.Invalid@1.0.0", &["A KEY"]),
            revealing_tool("T.Valid@1.0.0", &["KEY"]),
        ];
        let router = router(tools, service.secrets(&proxy, ""));
        let detail = value_or_detail(&router, "T.Invalid").await;
        let detail = detail.as_str().unwrap();
        let reason = "'A KEY' is not a valid name for a ";
        assert!(detail.contains(reason), "{detail}");
        assert_eq!(value_or_detail(&router, "T.Valid").await, json!(["value"]));
        assert_eq!(service.take_batches(&proxy), [1]);
    }
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn secrets_are_found_inside_json_and_in_bytes() {
    let (_emulator, proxy) = emulated().await;
    let client = aws::secrets_manager(&proxy);
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
    let (_emulator, proxy) = emulated().await;
    let client = aws::secrets_manager(&proxy);
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
