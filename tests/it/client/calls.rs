//! Both clients against a tool server, and what that of OXP sends and reads in each dialect.

use lambda_tools::client::{
    opentool::ToolReturn,
    oxp::{CallOutcome, Dialect},
};
use test_support::Running;

use super::*;
use crate::tools::program;

#[tokio::test]
async fn every_outcome_is_returned_as_data_in_every_dialect() {
    let (_running, url) = Running::serving(program().env("TOOLS_SECRETS", "none"));
    for dialect in [Dialect::Header, Dialect::Schema, Dialect::Otc] {
        let client = oxp(&url, once()).dialect(dialect);
        let tools = client.tools().await.unwrap();
        assert_eq!(tools.len(), 4, "{dialect:?}");
        let find = |id: &str| tools.iter().find(|it| it.id == id).unwrap();
        let add = find("Calculator.Add@1.0.0");
        assert_eq!(add.input_schema["properties"]["a"]["type"], "number");
        let sms = find("SMS.Send@0.1.2");
        assert_eq!(sms.requirements.secrets[0].id, "TWILIO_API_KEY");

        let outcome = async |tool: &str, input: Value| {
            let call = CallRequest::new(tool).input(input);
            client.call(&call).await.unwrap().outcome
        };
        let sum = outcome("Calculator.Add@1", json!({"a": 10, "b": 5})).await;
        assert_eq!(sum.value(), Some(json!(15)));

        let id = format!("id-{dialect:?}");
        let ring = CallRequest::new("Doorbell.Ring").call_id(&id);
        let ring = ring.input(json!({"doorbell_id": "doorbell42"}));
        for is_replay in [false, true] {
            let reply = client.call(&ring).await.unwrap();
            assert_eq!((&reply.call_id, reply.is_replay), (&id, is_replay));
            assert!(reply.duration.is_some_and(|it| it < Duration::from_secs(5)));
        }

        let failed = outcome("Doorbell.Ring", json!({"doorbell_id": "x"})).await;
        let CallOutcome::ToolError(failure) = failed else {
            panic!("{failed:?}")
        };
        assert_eq!(failure.message, "Doorbell ID not found");
        assert!(failure.can_retry && failure.developer_message.is_some());
        assert_eq!(failure.retry_after, Some(Duration::from_millis(500)));
        let prompt = failure.additional_prompt_content.unwrap();
        assert_eq!(prompt, "ids: doorbell42");

        let wrong = outcome("Calculator.Add", json!({"a": "ten"})).await;
        assert!(wrong.message().contains("b: Is required"));
        let CallOutcome::InvalidInput(invalid) = wrong else {
            panic!("{wrong:?}")
        };
        assert_eq!(invalid.parameter_errors["a"], "Must be a number");

        let unknown = outcome("No.Such", json!({})).await;
        assert!(matches!(&unknown, CallOutcome::ServerError(it) if it.message.contains("No_Such")));
        let sms = json!({"to": "+15005550006", "message": "Hello"});
        let missing = outcome("SMS.Send", sms).await;
        let CallOutcome::MissingRequirements(missing) = missing else {
            panic!("{missing:?}")
        };
        assert_eq!(missing.secrets[0].id, "TWILIO_API_KEY");
    }
}

#[tokio::test]
async fn calls_are_sent_in_each_dialect() {
    for (dialect, version, schema) in [
        (Dialect::Header, Some("1.0"), None),
        (Dialect::Schema, None, Some("urn:oxp:1.0")),
        (Dialect::Otc, None, Some("otc://1.0")),
    ] {
        let server = FakeServer::fixed(200, JSON, r#"{"success": true}"#).await;
        let call = CallRequest::new("A.B")
            .call_id("c")
            .trace_id("t")
            .user_id("u");
        let call = call.token("google", "t").secret("K", "v");
        let client = oxp(server.url(), once()).dialect(dialect);
        client.call(&call).await.unwrap();
        let request = json!({"tool_id": "A.B", "call_id": "c", "trace_id": "t", "input": {},
            "context": {"user_id": "u", "authorization": [{"id": "google", "token": "t"}],
                "secrets": [{"id": "K", "value": "v"}]}});
        let sent = &server.requests.lock().unwrap()[0];
        assert_eq!(sent.parts.uri.path(), "/tools/call");
        assert_eq!(sent.header("oxp-version"), version);
        let enveloped = schema.map(|it| json!({"$schema": it, "request": request}));
        assert_eq!(sent.body, enveloped.unwrap_or(request));
    }
}

#[tokio::test]
async fn missing_requirements_are_also_read_in_a_reply_with_200() {
    let body = r#"{"success": false, "error": {"message": "m", "missing_requirements":
        {"authorization": [{"id": "google", "url": "https://a.example", "check_url": "/check"}],
         "user_id": true}}}"#;
    let server = FakeServer::fixed(200, JSON, body).await;
    let client = oxp(server.url(), once());
    let outcome = client.call(&CallRequest::new("A.B")).await.unwrap().outcome;
    let CallOutcome::MissingRequirements(missing) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(missing.challenges[0].url, "https://a.example");
    assert_eq!(missing.challenges[0].check_url, "/check");
    assert!(missing.user_id && missing.message == "m");
}

pub(super) fn call(name: &str, arguments: &Value) -> FunctionCall {
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
    let jwt = JwtSigner::signed_with(SECRET);
    for (options, is_accepted) in [
        (once().api_key("key-of-the-client"), true),
        (once().jwt(jwt), true),
        (once(), false),
    ] {
        let document = opentool(&url, options.clone()).load().await;
        let tools = oxp(&url, options).tools().await;
        for error in [document.err(), tools.err()] {
            let is_rejected = matches!(error, Some(ClientError::Unauthorized { .. }));
            assert_eq!((error.is_none(), is_rejected), (is_accepted, !is_accepted));
        }
    }
}
