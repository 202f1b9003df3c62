//! Calls from an AgentCore Gateway, and the schemas of its targets.

use std::{fs, process::Command};

use serde_json::{Value, json};
use test_support::{
    agentcore::assert_definitions,
    aws::{CREDENTIALS, Emulator},
    lambda::event,
    programs::Rie,
};

use crate::{
    clients::stdout_of,
    support::{isolated, repository, toolbox},
};

/// Returns a client context with this name of a tool.
fn context(tool: &str) -> Value {
    json!({"custom": {
        "bedrockAgentCoreToolName": tool,
        "bedrockAgentCoreGatewayId": "gateway-1",
        "bedrockAgentCoreTargetId": "TARGET1",
        "bedrockAgentCorePropagatedHeaders": {"x-user-id": "ada"},
    }})
}

#[tokio::test]
#[ignore = "needs AWS SAM; run tests/all"]
async fn a_function_accepts_only_the_kinds_of_events_in_its_setting() {
    let default = "rest-api,http-api,function-url,load-balancer,warm-up,direct";
    let none = json!({});
    let mut custom_domain = event("sources/http-api");
    custom_domain["requestContext"]["domainName"] = "tools.lambda-url.example.com".into();
    let add = json!({"a": 10, "b": 5});
    let direct = json!({"tool_id": "Calculator.Add", "input": add});
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let kinds = [
        ("rest-api", event("sources/rest-api"), &none),
        ("rest-api", event("sources/http-api.payload-1.0"), &none),
        ("http-api", event("sources/http-api"), &none),
        ("http-api", custom_domain, &none),
        ("function-url", event("sources/function-url"), &none),
        ("load-balancer", event("sources/alb"), &none),
        ("warm-up", json!({}), &none),
        ("warm-up", json!({"warmer": true}), &none),
        ("direct", direct, &none),
        ("direct", ping, &none),
        ("agentcore", add, &context("calc___Calculator_Add")),
    ];
    for setting in ["http-api,agentcore", ""] {
        let settings = [("TOOLS_EVENTS", setting)];
        let unset = setting.is_empty();
        let settings = if unset { &[][..] } else { &settings };
        let function = Rie::start(toolbox().get_program(), settings).await;
        let accepted = if unset { default } else { setting };
        for (kind, event, context) in &kinds {
            let context = context.to_string();
            let answer = function.invoke_with(event, context.as_bytes()).await;
            let is_accepted = accepted.split(',').any(|it| it == *kind);
            let message = answer["errorMessage"].as_str().unwrap_or_default();
            let is_refused = message.contains("does not accept") && message.contains(kind);
            assert_eq!(is_refused, !is_accepted, "{setting} {kind} {answer}");
        }
    }
}

/// Another test shows that the service's own model takes such definitions.
#[test]
fn the_list_for_a_target_is_printed_without_settings() {
    let mut program = toolbox();
    let program = program.args(["--tools-for", "agentcore"]);
    // None is read.
    let output = program.env("TOOLS_AUTH", "nobody").output().unwrap();
    let list: Value = serde_json::from_str(&stdout_of(&output)).unwrap();
    let tools = list.as_array().unwrap();
    assert_eq!(tools.len(), 5, "{list}");
    assert_definitions(tools);
}

/// Types the requests of the page to an emulator, with a gateway, a role and a function in place of the
/// words in capitals.
#[tokio::test]
#[ignore = "needs moto and the AWS CLI; run tests/all"]
async fn an_existing_gateway_accepts_the_targets_of_the_page() {
    let emulator = Emulator::start().await;
    let cli = repository("target/venv-aws/bin");
    let path = std::env::var("PATH").unwrap();
    let mut script = String::from(
        "set -e\n\
         aws iam create-role --role-name GATEWAY_ROLE --assume-role-policy-document '{}' >/dev/null\n\
         GATEWAY_ID=$(aws bedrock-agentcore-control create-gateway --name tools --protocol-type MCP \
         --authorizer-type AWS_IAM --role-arn arn:aws:iam::123456789012:role/GATEWAY_ROLE \
         --output text --query gatewayId)\n",
    );
    let page = fs::read_to_string(repository("docs/agentcore.md")).unwrap();
    // Another test types the other commands.
    let services = ["aws iam ", "aws bedrock-agentcore-control "];
    let is_request = |line: &&str| services.iter().any(|it| line.starts_with(it));
    let requests = page.lines().filter(is_request);
    for request in requests {
        let request = request.replace("GATEWAY_ID", "$GATEWAY_ID");
        let request = request.replace(
            "FUNCTION_ARN",
            "arn:aws:lambda:us-east-1:123456789012:function:toolbox",
        );
        script += &request.replace("URL_ID.lambda-url.REGION", "abc.lambda-url.us-east-1");
        script += " >/dev/null\n";
    }
    script += "aws bedrock-agentcore-control list-gateway-targets --gateway-identifier $GATEWAY_ID \
               --output text --query 'items[].status'\n";
    let mut shell = isolated(Command::new("sh"));
    shell.args(["-c", &script]).envs(CREDENTIALS);
    shell.env("PATH", format!("{}:{path}", cli.display()));
    shell.env("AWS_DEFAULT_REGION", "us-east-1");
    shell.env("AWS_ENDPOINT_URL", emulator.url());
    shell.current_dir(std::env::temp_dir());
    assert_eq!(
        stdout_of(&shell.output().unwrap()).trim(),
        "READY\tREADY",
        "{script}"
    );
}

#[test]
fn a_list_is_printed_only_for_agentcore() {
    let output = toolbox().args(["--tools-for", "mistral"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("--tools-for must be agentcore."), "{text}");
    assert!(output.stdout.is_empty());
}
