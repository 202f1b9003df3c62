//! The compiled program as a Lambda function.

use std::{process::Command, time::Duration};

use serde_json::{Value, json};
use test_support::{
    aws::CREDENTIALS,
    fed,
    lambda::{Platform, event, invoke_on},
    programs::Rie,
};

use crate::{
    clients::stdout_of,
    support::{isolated, repository, toolbox},
};

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
    let mut client = isolated(Command::new(repository("target/venv-aws/bin/python")));
    client
        .arg(repository("tests/agentcore/lambda_client.py"))
        .env("AWS_ENDPOINT_URL_LAMBDA", &function.url)
        .envs(CREDENTIALS);
    let printed = stdout_of(&tokio::task::block_in_place(|| fed(&mut client, &input)));
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

/// The events show usual client contexts, and these are what a header can also have. For a Lambda
/// target of an AgentCore Gateway, the arguments of the model are the event: whatever
/// they are, and however its client context is written, they are not taken for another event.
#[tokio::test]
async fn a_client_context_decides_who_invokes_and_fails_no_other_invocation() {
    let mut platform = Platform::start(&mut toolbox(), &[], &[]).await;
    let tool = r#""bedrockAgentCoreToolName": "calc___Calculator_Add""#;
    let deep = |inner: &str| {
        let (open, close) = ("[".repeat(900), "]".repeat(900));
        format!(r#"{{"custom": {{{inner}"deep": {open}{close}}}}}"#)
    };
    let (deep_with_tool, deep) = (deep(&format!("{tool}, ")), deep(""));
    let of_gateways: [&[u8]; 2] = [
        deep_with_tool.as_bytes(),
        // Headers of clients need not be UTF-8.
        b"{\"custom\": {\"bedrockAgentCoreX\": \"\xff\"}}",
    ];
    let of_others: [&[u8]; 4] = [deep.as_bytes(), b"", b"not JSON", b"\xff"];
    let of_gateways = of_gateways.map(|it| (it, true));
    for (context, is_gateway) in of_gateways
        .into_iter()
        .chain(of_others.map(|it| (it, false)))
    {
        for event in [event("sources/alb"), json!({}), json!({"tool_id": "A.B"})] {
            let (failed, answer, _) = platform.invoke_with(&event, context).await;
            let context = String::from_utf8_lossy(context);
            assert_eq!(failed, is_gateway, "{context} {event} {answer}");
            if failed {
                assert_eq!(answer["errorType"], "UnsupportedEvent", "{context}");
                let message = answer["errorMessage"].as_str().unwrap();
                assert!(message.contains("'agentcore' (TOOLS_EVENTS"), "{message}");
            }
        }
    }
}

#[tokio::test]
async fn a_hanging_store_does_not_prevent_a_response() {
    // Accepts connections and sends nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let aws = [
        ("AWS_ENDPOINT_URL", &*url),
        ("TOOLS_SECRETS", "secrets-manager"),
        ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
    ];
    let short = Some(Duration::from_millis(900));
    let with_key = (event("authentication/key"), short);
    let sms = (event("secrets/stored/sms.header-form"), short);
    let ring = (event("doorbell/ring.header-form"), short);
    for (auth, calls, request) in [
        ("none", "none", sms),
        ("api-key", "none", with_key),
        ("none", "dynamodb", ring),
    ] {
        let settings = [("TOOLS_AUTH", auth), ("TOOLS_IDEMPOTENCY", calls)];
        let environment = [&CREDENTIALS[..], &aws, &settings].concat();
        let (reports, _) = invoke_on(&mut toolbox(), &[request], &environment).await;
        let (_, answer, is_in_time) = &reports[0];
        assert!(*is_in_time, "{auth}");
        assert_eq!(answer["statusCode"], 400, "{answer}");
        assert_eq!(answer["headers"]["retry-after"], "1", "{answer}");
    }
}
