//! The compiled program as a Lambda function, under a runtime API on a loopback address.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{Router, extract::State, routing::post};
use serde_json::{Value, json};
use test_support::{
    Served,
    aws::CREDENTIALS,
    lambda::{Platform, Report, event, invoke_on},
};

use crate::{
    agentcore::run,
    support::{repository, toolbox},
};
use events::Stub;

/// Runs the toolbox on these events, each with its time limit; returns a report for each.
pub(crate) async fn invoke(
    events: &[(Value, Option<Duration>)],
    environment: &[(&str, &str)],
) -> Vec<Report> {
    invoke_on(&mut toolbox(), events, environment).await.0
}

#[tokio::test]
async fn the_binary_is_a_lambda_function() {
    let long = Some(Duration::from_secs(30));
    let events = [
        (event("sources/http-api"), long),
        (json!({"Records": [{"eventSource": "aws:sqs"}]}), long),
        (event("malformed/invalid-base64"), long),
        (json!("nonsense"), long),
        (event("sources/alb"), long),
    ];
    let reports = invoke(&events, &[]).await;
    let failed: Vec<_> = reports.iter().map(|(failed, _, _)| *failed).collect();
    assert_eq!(failed, [false, true, false, true, false]);
    let (_, answer, _) = &reports[0];
    assert_eq!(answer["statusCode"], 200);
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["value"], 15);
    let (_, error, _) = &reports[1];
    assert_eq!(error["errorType"], "UnsupportedEvent");
    let message = error["errorMessage"].as_str().unwrap();
    assert!(
        message.contains("the event has the fields Records"),
        "{message}"
    );
    assert_eq!(reports[2].1["statusCode"], 400);
    assert_eq!(reports[4].1["statusDescription"], "200 OK");
}

/// AWS's client for Lambda functions sends the messages of MCP as events.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs run-mcp-servers-with-aws-lambda; run tests/all"]
async fn a_client_of_aws_speaks_mcp_by_invoking_the_function() {
    let environment = [
        ("TOOLS_AUTH", "api-key"),
        ("TOOLS_API_KEY", "a-key-of-32-characters-for-tests"),
    ];
    let platform = Platform::start(&mut toolbox(), &[], &environment).await;
    let platform = Arc::new(tokio::sync::Mutex::new(platform));
    // Lambda's Invoke API.
    let invoke = async |State(platform): State<Arc<tokio::sync::Mutex<Platform>>>,
                        event: String| {
        let event = serde_json::from_str(&event).unwrap();
        let mut platform = platform.lock().await;
        platform.send_events(&[(event, Some(Duration::from_secs(20)))]);
        let (failed, answer, _) = platform.reports(1).await.remove(0);
        let failed = failed.then_some([("x-amz-function-error", "Unhandled")]);
        (failed, answer.to_string())
    };
    let path = "/2015-03-31/functions/toolbox/invocations";
    let api = Router::new()
        .route(path, post(invoke))
        .with_state(Arc::clone(&platform));
    let served = Served::start(api).await;
    let url = served.url.clone();
    let calls = [
        json!({"name": "Calculator_Add", "arguments": {"a": 10, "b": 5}}),
        json!({"name": "Doorbell_Ring", "arguments": {"doorbell_id": "doorbell1"}}),
        json!({"name": "Calculator_Ad", "arguments": {}}),
    ];
    let input = calls.map(|it| it.to_string()).join("\n") + "\n";
    let printed = tokio::task::spawn_blocking(move || {
        let python = repository("target/venv-aws/bin/python");
        let environment = [("AWS_ENDPOINT_URL_LAMBDA", &*url)];
        let environment = [&environment[..], &CREDENTIALS].concat();
        run(&python, "lambda_client", &environment, &input)
    });
    let printed = printed.await.unwrap();
    let results: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [initialized, list, added, failed, unknown] = &results[..] else {
        panic!("{printed}");
    };
    assert_eq!(initialized["protocolVersion"], "2025-11-25");
    assert_eq!(list["tools"].as_array().unwrap().len(), 5);
    assert_eq!(added["structuredContent"], json!({"result": 15}));
    assert_eq!(failed["isError"], true);
    let error = unknown["error"].as_str().unwrap();
    assert!(error.contains("did you mean Calculator_Add?"), "{error}");
}

#[tokio::test]
async fn a_response_is_sent_before_the_deadline() {
    let stub = Stub::start().await;
    let mut slow = event("gmail/emails.header-form");
    slow["body"] = slow["body"]
        .as_str()
        .unwrap()
        .replace("is:unread", "slow")
        .into();
    let begun = SystemTime::now();
    let events = [
        (slow.clone(), Some(Duration::from_millis(900))),
        // No time left at all is also a limit.
        (slow, Some(Duration::ZERO)),
        (event("gmail/emails.header-form"), None),
    ];
    let reports = invoke(&events, &[("GMAIL_URL", &stub.url())]).await;
    assert!(begun.elapsed().unwrap() < Duration::from_secs(5));
    assert!(reports[0].2, "the response was late");
    let messages = [
        "The tool did not finish in time",
        "There was no time left to run the tool",
    ];
    for ((failed, answer, _), message) in reports.iter().zip(messages) {
        assert!(!failed);
        let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["success"], false);
        assert_eq!(body["error"]["can_retry"], true, "{body}");
        assert_eq!(body["error"]["message"], message);
    }
    let (_, answer, _) = &reports[2];
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["success"], true, "{body}");
}

/// For a Lambda target of an AgentCore Gateway, the arguments of the model are the event.
#[tokio::test]
async fn an_event_of_an_agentcore_gateway_is_refused_by_default_whatever_its_fields_are() {
    let mut posing = event("sources/http-api");
    let claims = json!({"iss": "https://idp.example", "sub": "admin"});
    posing["requestContext"]["authorizer"] = json!({"jwt": {"claims": claims, "scopes": []}});
    let call = json!({"tool_id": "Calculator.Add", "input": {"a": 10, "b": 5}});
    let events = [
        posing,
        event("sources/alb"),
        call.clone(),
        json!({"$schema": "otc://1.0", "request": call}),
        json!({"a": 10, "b": 5}),
        json!({}),
        json!([1]),
    ];
    let tool = r#""bedrockAgentCoreToolName": "calc___Calculator_Add""#;
    let contexts = [
        format!(r#"{{"custom": {{{tool}}}}}"#),
        format!(r#"{{"custom": {{{tool}, "bedrockAgentCorePropagatedHeaders": {{"a": "b"}}}}}}"#),
        r#"{"custom": {"bedrockagentcorePropagatedHeaders": {"a": "\ud800"}}}"#.to_owned(),
        r#"{"client": {}, "custom": {"x": 1, "BEDROCKAGENTCORE": null}}"#.to_owned(),
        format!(r#"{{{tool}, "custom": "\u00fc"}}"#),
        format!(
            r#"{{"custom": {{{tool}, "deep": {}{}}}}}"#,
            "[".repeat(900),
            "]".repeat(900)
        ),
    ];
    let mut contexts: Vec<_> = contexts.map(String::into_bytes).into();
    // Headers of clients need not be UTF-8.
    contexts.push([b"{\"custom\": {\"bedrockAgentCoreX\": \"", &b"\xff\"}}"[..]].concat());
    let environment = [("TOOLS_AUTH", "gateway")];
    let mut platform = Platform::start(&mut toolbox(), &[], &environment).await;
    let (failed, answer, _) = platform.invoke_with(&events[0], b"{}").await;
    assert_eq!(
        (failed, &answer["statusCode"]),
        (false, &json!(200)),
        "{answer}"
    );
    for (number, context) in contexts.iter().enumerate() {
        for event in &events {
            let (failed, error, _) = platform.invoke_with(event, context).await;
            assert!(failed, "{number} {event} {error}");
            assert_eq!(error["errorType"], "UnsupportedEvent", "{number} {event}");
            let message = error["errorMessage"].as_str().unwrap();
            for text in ["'agentcore'", "TOOLS_EVENTS"] {
                assert!(message.contains(text), "{message}");
            }
        }
    }
}

#[tokio::test]
async fn no_client_context_fails_an_invocation() {
    let long = format!(r#"{{"custom": {{"a": "{}"}}}}"#, "x".repeat(3_560));
    let deep = format!(
        r#"{{"custom": {}{}}}"#,
        "[".repeat(1_000),
        "]".repeat(1_000)
    );
    let contexts = [
        "",
        "{}",
        r#"{"custom": {}}"#,
        r#"{"custom": {"a": {"b": [1]}, "c": [2], "d": 3, "e": null, "f": "\ud800"}}"#,
        r#"{"custom": {"a": "bedrockAgentCoreToolName", "x-bedrockAgentCore": "b"}}"#,
        r#"{"custom": [1]}"#,
        r#"{"custom": {"gr\u00f6\u00dfe": "größe 日本"}, "unknown": 1}"#,
        r#"{"client": {"installation_id": 1}, "env": [], "environment": {"locale": {}}}"#,
        r#""text""#,
        "[1]",
        "null",
        "not JSON",
        r#"{"custom": {"#,
        &long,
        &deep,
    ];
    let mut platform = Platform::start(&mut toolbox(), &[], &[]).await;
    let contexts = contexts
        .map(str::as_bytes)
        .into_iter()
        .chain([&b"\xff"[..]]);
    for context in contexts {
        let (failed, answer, _) = platform.invoke_with(&event("sources/alb"), context).await;
        let context = String::from_utf8_lossy(context);
        assert!(!failed, "{context} {answer}");
        assert_eq!(answer["statusCode"], 200, "{context} {answer}");
    }
}
