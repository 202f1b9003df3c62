//! The OpenTool client against a tool server, and its five errors.

#[cfg(feature = "jwt")]
use lambda_tools::client::JwtSigner;
use lambda_tools::client::opentool::{FunctionCall, OpenToolError, ToolReturn};
use serde_json::{Value, json};

use super::{FakeServer, JSON, once};
use test_support::Running;

use crate::tools::program;

fn call(name: &str, arguments: Value) -> FunctionCall {
    let Value::Object(arguments) = arguments else {
        panic!("{arguments}")
    };
    FunctionCall::new("call-1", name, arguments)
}

#[tokio::test]
async fn version_load_and_call_work() {
    let (_running, url) = Running::serving(&mut program());
    for url in [
        url.clone(),
        format!("{url}/"),
        format!("{url}/opentool"),
        format!("{url}/opentool/"),
    ] {
        let client = super::opentool(&url, once());
        assert_eq!(client.version().await.unwrap().version, "0.1.0");
    }
    let client = super::opentool(&url, once());
    let document = client.load().await.unwrap().unwrap();
    assert_eq!(document["info"]["title"], "Toolbox");
    let functions = &document["functions"];
    assert_eq!(functions[0]["name"], "Calculator_Add");
    assert_eq!(functions[1]["name"], "Doorbell_Ring");
    let schema = &functions[0]["parameters"][0]["schema"];
    assert_eq!(schema["type"], "number");
    let add = call("Calculator_Add", json!({"a": 10, "b": 5}));
    let returned = client.call(&add).await.unwrap();
    assert_eq!(
        json!(returned),
        json!({"id": "call-1", "result": {"value": 15}})
    );
    let error = client
        .call(&call("Calculator_Add", json!({"a": 1})))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, OpenToolError::Call { code: Some(-32602), message } if message.contains("b: Is required"))
    );
    let error = client.call(&call("No_Such", json!({}))).await.unwrap_err();
    assert!(matches!(
        &error,
        OpenToolError::Call {
            code: Some(-32601),
            ..
        }
    ));
    let error = client
        .call(&call("Doorbell_Ring", json!({"doorbell_id": "x"})))
        .await
        .unwrap_err();
    assert!(matches!(
        &error,
        OpenToolError::Call {
            code: Some(500),
            ..
        }
    ));
    assert_eq!(error.code(), None);
}

#[cfg(feature = "jwt")]
#[tokio::test]
async fn api_keys_and_jwts_are_sent() {
    const SECRET: &str = "jwt-secret-of-the-client-0123456789abcdef";
    let (_running, url) = Running::serving(
        program()
            .env("TOOLS_AUTH", "api-key,jwt")
            .env("TOOLS_JWT_SECRET", SECRET)
            .env("TOOLS_API_KEY", "key-of-the-client"),
    );
    let client = |options| super::opentool(&url, options);
    let accepted = [
        client(once().api_key("key-of-the-client")),
        client(once().jwt(JwtSigner::signed_with(SECRET))),
    ];
    for client in accepted {
        assert!(client.version().await.is_ok() && client.load().await.is_ok());
        let add = call("Calculator_Add", json!({"a": 10, "b": 5}));
        assert_eq!(client.call(&add).await.unwrap().result["value"], 15);
    }
    for client in [client(once()), client(once().api_key("another-key"))] {
        assert_eq!(client.version().await, Err(OpenToolError::Unauthorized));
        assert_eq!(client.load().await, Err(OpenToolError::Unauthorized));
        assert_eq!(
            client.call(&call("Calculator_Add", json!({}))).await,
            Err(OpenToolError::Unauthorized)
        );
    }
    assert!(!format!("{:?}", client(once().api_key("marked-key"))).contains("marked"));
}

#[tokio::test]
async fn the_five_errors_have_their_codes_messages_and_json() {
    let error_from = async |server: &FakeServer| {
        let client = super::opentool(&server.url(), once());
        client.call(&call("Add", json!({}))).await.unwrap_err()
    };
    let nowhere = super::opentool("http://127.0.0.1:1", once());
    let running = "Please check OpenTool Server is RUNNING or NOT";
    for (error, code, message) in [
        (
            error_from(&FakeServer::fixed(200, JSON, "null").await).await,
            200,
            "Response is null",
        ),
        (
            error_from(&FakeServer::fixed(200, JSON, r#"{"id": "call-1", "error": null}"#).await)
                .await,
            200,
            "Response is null",
        ),
        (
            error_from(&FakeServer::fixed(502, JSON, "").await).await,
            502,
            "Response is null",
        ),
        (
            error_from(&FakeServer::fixed(500, JSON, r#"{"result": {}, "error": null}"#).await)
                .await,
            500,
            "Error is null",
        ),
        (
            error_from(&FakeServer::fixed(401, JSON, "{}").await).await,
            401,
            "Please check API Key is VALID or NOT",
        ),
        (
            error_from(&FakeServer::fixed(404, JSON, "{}").await).await,
            404,
            running,
        ),
        (
            nowhere.call(&call("Add", json!({}))).await.unwrap_err(),
            404,
            running,
        ),
    ] {
        assert_eq!((error.code(), error.message()), (Some(code), message));
        assert_eq!(error.to_string(), message);
    }
    let failed_call = r#"{"jsonrpc": "2.0", "result": {}, "error": {"code": 500, "message": "No."}, "id": "call-1"}"#;
    for status in [200, 400, 500] {
        let error = error_from(&FakeServer::fixed(status, JSON, failed_call).await).await;
        assert_eq!(
            error,
            OpenToolError::Call {
                code: Some(500),
                message: "No.".into()
            }
        );
        assert_eq!((error.code(), error.message()), (None, "No."));
    }
    for wrong in [
        r#"{"jsonrpc": "2.0", "result": {}, "error": null, "id": "call-2"}"#,
        r#"{"jsonrpc": "2.0", "result": 5, "error": null, "id": "call-1"}"#,
        r#"{"jsonrpc": "2.0", "resu"#,
    ] {
        let error = error_from(&FakeServer::fixed(200, JSON, wrong).await).await;
        assert!(
            matches!(error, OpenToolError::Call { code: None, .. }),
            "{wrong}: {error:?}"
        );
    }
}

#[tokio::test]
async fn an_empty_response_means_that_there_is_no_document() {
    for empty in ["{}", "null", ""] {
        let server = FakeServer::fixed(200, JSON, empty).await;
        let client = super::opentool(&server.url(), once());
        assert_eq!(client.load().await, Ok(None), "{empty:?}");
    }
    let server = FakeServer::fixed(200, JSON, "[1]").await;
    let error = super::opentool(&server.url(), once()).load().await;
    assert!(matches!(error, Err(OpenToolError::Call { code: None, .. })));
}

#[test]
fn the_types_have_the_json_format_of_the_specification() {
    let json = json!({"id": "1", "name": "Calculator_Add", "arguments": {"a": 1}});
    let call: FunctionCall = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(json!(call), json);
    let json = json!({"id": "1", "result": {"value": 1}});
    let result: ToolReturn = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(json!(result), json);
}
