//! The OpenTool client against a tool server, and the credentials of both clients.

use lambda_tools::client::{
    ClientError,
    opentool::{FunctionCall, ToolReturn},
};
use serde_json::{Value, json};

use super::{FakeServer, JSON, once, opentool};
use test_support::Running;

use crate::tools::program;

fn call(name: &str, arguments: &Value) -> FunctionCall {
    serde_json::from_value(json!({"id": "call-1", "name": name, "arguments": arguments})).unwrap()
}

#[tokio::test]
async fn load_and_call_work() {
    let (_running, url) = Running::serving(&mut program());
    for path in ["", "/", "/opentool", "/opentool/"] {
        let client = opentool(&format!("{url}{path}"), once());
        let document = client.load().await.unwrap().unwrap();
        assert_eq!(document["functions"][0]["name"], "Calculator_Add", "{path}");
    }
    let client = opentool(&url, once());
    let add = call("Calculator_Add", &json!({"a": 10, "b": 5}));
    let returned = client.call(&add).await.unwrap();
    let expected = json!({"id": "call-1", "result": {"value": 15}});
    assert_eq!(json!(returned), expected);
    let decoded: ToolReturn = serde_json::from_value(expected).unwrap();
    assert_eq!(decoded, returned);
    let wrong = json!({"a": 1});
    let doorbell = json!({"doorbell_id": "x"});
    for (name, arguments, code, message) in [
        ("Calculator_Add", wrong, -32602, "b: Is required"),
        ("No_Such", json!({}), -32601, "No_Such"),
        ("Doorbell_Ring", doorbell, 500, "Doorbell ID not found"),
    ] {
        let error = client.call(&call(name, &arguments)).await.unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        let is_expected = matches!(error, ClientError::Call { code: Some(it), .. } if it == code);
        assert!(is_expected, "{error:?}");
    }
}

#[tokio::test]
async fn an_empty_response_means_that_there_is_no_document() {
    for empty in ["{}", "null", ""] {
        let server = FakeServer::fixed(200, JSON, empty).await;
        let document = opentool(server.url(), once()).load().await.unwrap();
        assert_eq!(document, None, "{empty:?}");
    }
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
    let jwt = lambda_tools::client::JwtSigner::signed_with(SECRET);
    for (options, is_accepted) in [
        (once().api_key("key-of-the-client"), true),
        (once().jwt(jwt), true),
        (once(), false),
    ] {
        let document = opentool(&url, options.clone()).load().await;
        let tools = super::oxp(&url, options).tools().await;
        for error in [document.err(), tools.err()] {
            let is_rejected = matches!(error, Some(ClientError::Unauthorized { .. }));
            assert_eq!((error.is_none(), is_rejected), (is_accepted, !is_accepted));
        }
    }
}
