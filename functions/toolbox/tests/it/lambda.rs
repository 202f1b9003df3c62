//! The compiled program as a Lambda function.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{
    aws::CREDENTIALS,
    lambda::{Platform, Report, event, invoke_on},
    rie::Rie,
};

use crate::{
    agentcore::run,
    support::{repository, toolbox},
};

/// Runs the toolbox on these events, each with its time limit; returns a report for each.
pub(crate) async fn invoke(
    events: &[(Value, Option<Duration>)],
    environment: &[(&str, &str)],
) -> Vec<Report> {
    invoke_on(&mut toolbox(), events, environment).await.0
}

#[tokio::test]
#[ignore = "needs AWS SAM; run tests/all"]
async fn the_binary_is_a_lambda_function() {
    let function = Rie::start(toolbox().get_program(), &[]).await;
    let answer = function.invoke(&event("sources/http-api")).await;
    assert_eq!(answer["statusCode"], 200, "{answer}");
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["value"], 15);
    let queue = json!({"Records": [{"eventSource": "aws:sqs"}]});
    for unknown in [queue, json!("nonsense")] {
        let error = function.invoke(&unknown).await;
        assert_eq!(error["errorType"], "UnsupportedEvent", "{error}");
    }
    // The process goes on.
    let answer = function.invoke(&event("sources/alb")).await;
    assert_eq!(answer["statusDescription"], "200 OK");
}

/// AWS's client for Lambda functions sends the messages of MCP as events.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs run-mcp-servers-with-aws-lambda; run tests/all"]
async fn a_client_of_aws_speaks_mcp_by_invoking_the_function() {
    let settings = [
        ("TOOLS_AUTH", "api-key"),
        ("TOOLS_API_KEY", "a-key-of-32-characters-for-tests"),
    ];
    let function = Rie::start(toolbox().get_program(), &settings).await;
    let calls = [
        json!({"name": "Calculator_Add", "arguments": {"a": 10, "b": 5}}),
        json!({"name": "Doorbell_Ring", "arguments": {"doorbell_id": "doorbell1"}}),
        json!({"name": "Calculator_Ad", "arguments": {}}),
    ];
    let input = calls.map(|it| it.to_string()).join("\n") + "\n";
    let printed = tokio::task::block_in_place(|| {
        let python = repository("target/venv-aws/bin/python");
        let environment = [("AWS_ENDPOINT_URL_LAMBDA", &*function.url)];
        let environment = [&environment[..], &CREDENTIALS].concat();
        run(&python, "lambda_client", &environment, &input)
    });
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

/// For a Lambda target of an AgentCore Gateway, the arguments of the model are the event: whatever
/// they are, and however its client context is written, they are not taken for another event.
#[tokio::test]
async fn a_client_context_decides_who_invokes_and_fails_no_other_invocation() {
    let mut platform = Platform::start(&mut toolbox(), &[], &[]).await;
    let tool = r#""bedrockAgentCoreToolName": "calc___Calculator_Add""#;
    let deep = |inner: &str| {
        let (open, close) = ("[".repeat(900), "]".repeat(900));
        format!(r#"{{"custom": {{{inner}"deep": {open}{close}}}}}"#)
    };
    for (context, is_gateway) in [
        (format!(r#"{{"custom": {{{tool}}}}}"#).into_bytes(), true),
        (deep(&format!("{tool}, ")).into_bytes(), true),
        (
            br#"{"client": {}, "custom": {"x": 1, "BEDROCKAGENTCORE": null}}"#.to_vec(),
            true,
        ),
        (
            br#"{"custom": {"bedrockagentcoreX": {"a": "\ud800"}}}"#.to_vec(),
            true,
        ),
        // Headers of clients need not be UTF-8.
        (
            b"{\"custom\": {\"bedrockAgentCoreX\": \"\xff\"}}".to_vec(),
            true,
        ),
        (deep("").into_bytes(), false),
        (Vec::new(), false),
        (b"null".to_vec(), false),
        (b"not JSON".to_vec(), false),
        (b"\xff".to_vec(), false),
        (r#"{"custom": {"größe": "日本"}}"#.into(), false),
        (
            br#"{"custom": {"a": "bedrockAgentCoreToolName"}}"#.to_vec(),
            false,
        ),
    ] {
        for event in [event("sources/alb"), json!({}), json!({"tool_id": "A.B"})] {
            let (failed, answer, _) = platform.invoke_with(&event, &context).await;
            let context = String::from_utf8_lossy(&context);
            assert_eq!(failed, is_gateway, "{context} {event} {answer}");
            if failed {
                assert_eq!(answer["errorType"], "UnsupportedEvent", "{context}");
                let message = answer["errorMessage"].as_str().unwrap();
                assert!(message.contains("'agentcore' (TOOLS_EVENTS"), "{message}");
            }
        }
    }
}
