//! Calls from an AgentCore Gateway, and the schemas of its targets.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use test_support::{
    agentcore::{assert_definitions, check_with_botocore},
    aws::{CREDENTIALS, Emulator},
    lambda::{Platform, event},
};

use crate::{
    clients::stdout_of,
    support::{faults, installed, isolated, repository, toolbox},
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

/// Runs a Python program with this input; returns what it prints.
pub(crate) fn run(
    python: &Path,
    program: &str,
    environment: &[(&str, &str)],
    input: &str,
) -> String {
    let mut command = isolated(Command::new(python));
    command.arg(repository(&format!("tests/agentcore/{program}.py")));
    command.envs(environment.iter().copied());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // The program may print before it has read everything.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let printed = stdout_of(&child.wait_with_output().unwrap());
    writer.join().unwrap().unwrap();
    printed
}

/// Returns the list that a program prints instead of serving.
fn exported(program: &mut Command) -> Value {
    let program = program.args(["--tools-for", "agentcore"]);
    // No setting is needed, and none is read.
    let output = program.env("TOOLS_AUTH", "nobody").output().unwrap();
    serde_json::from_str(&stdout_of(&output)).unwrap()
}

#[tokio::test]
async fn no_argument_chooses_the_tool_the_caller_or_the_kind_of_event() {
    let folder = repository("events/agentcore-gateway");
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().file_name());
    let names = names.map(|it| it.into_string().unwrap());
    let posing: Vec<_> = names
        .filter(|it| it.starts_with("poses-as.") && !it.ends_with(".expected.json"))
        .filter_map(|it| it.strip_suffix(".json").map(str::to_owned))
        .filter(|it| !it.ends_with(".client-context"))
        .collect();
    assert!(posing.len() >= 9, "{posing:?}");
    let environment = [
        ("TOOLS_AUTH", "gateway"),
        (
            "TOOLS_EVENTS",
            "rest-api,http-api,function-url,load-balancer,direct,agentcore",
        ),
    ];
    let mut platform = Platform::start(&mut toolbox(), &[], &environment).await;
    let context = context("calc___Calculator_Add").to_string();
    for name in &posing {
        let event = event(&format!("agentcore-gateway/{name}"));
        let (failed, answer, _) = platform.invoke_with(&event, context.as_bytes()).await;
        assert!(!failed, "{name} {answer}");
        assert_eq!(answer["isError"], true, "{name} {answer}");
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("The input is invalid:"), "{text}");
        assert!(text.contains("\n- a: Is required."), "{text}");
    }
    let add = json!({"a": 10, "b": 5});
    let (failed, answer, _) = platform.invoke_with(&add, context.as_bytes()).await;
    assert!(!failed);
    let expected = json!({
        "content": [{"type": "text", "text": r#"{"result":15}"#}],
        "structuredContent": {"result": 15},
        "isError": false,
    });
    assert_eq!(answer, expected);
    let printed = platform.end();
    let lines = printed.iter().map(|it| serde_json::from_str(it).unwrap());
    let calls: Vec<Value> = lines.filter(|it: &Value| it["message"] == "call").collect();
    assert_eq!(calls.len(), posing.len() + 1);
    for line in &calls {
        assert_eq!(line["caller"], "agentcore gateway-1 TARGET1", "{line}");
        assert_eq!(line["dialect"], "agentcore", "{line}");
        assert_eq!(line["tool"], "Calculator.Add", "{line}");
    }
}

/// Events of each kind, with the names of the settings that accept it.
fn kinds() -> Vec<(&'static [&'static str], Value, Value)> {
    let none = json!({});
    let call = json!({"tool_id": "Calculator.Add", "input": {"a": 10, "b": 5}});
    let gateway = context("calc___Calculator_Add");
    let mut custom_domain = event("sources/http-api");
    custom_domain["requestContext"]["domainName"] = "tools.lambda-url.example.com".into();
    vec![
        (&["rest-api"], event("sources/rest-api"), none.clone()),
        (
            &["rest-api"],
            event("sources/http-api.payload-1.0"),
            none.clone(),
        ),
        (&["http-api"], event("sources/http-api"), none.clone()),
        (
            &["function-url"],
            event("sources/function-url"),
            none.clone(),
        ),
        (&["http-api"], custom_domain, none.clone()),
        (&["load-balancer"], event("sources/alb"), none.clone()),
        (&["warm-up"], json!({}), none.clone()),
        (&["direct"], call, none),
        (&["agentcore"], json!({"a": 10, "b": 5}), gateway),
    ]
}

#[tokio::test]
async fn a_function_accepts_only_the_kinds_of_events_in_its_setting() {
    let default = "rest-api,http-api,function-url,load-balancer,warm-up,direct";
    let names = default.split(',').chain(["agentcore", ""]);
    for setting in names {
        let mut environment = vec![("TOOLS_BASE_PATH", "/agents")];
        if !setting.is_empty() {
            environment.push(("TOOLS_EVENTS", setting));
        }
        let mut platform = Platform::start(&mut toolbox(), &[], &environment).await;
        for (names, event, context) in kinds() {
            let context = context.to_string();
            let (failed, answer, _) = platform.invoke_with(&event, context.as_bytes()).await;
            let accepted = if setting.is_empty() { default } else { setting };
            let is_accepted = accepted.split(',').any(|it| names.contains(&it));
            assert_eq!(failed, !is_accepted, "{setting} {names:?} {answer}");
            if failed {
                assert_eq!(answer["errorType"], "UnsupportedEvent");
                let message = answer["errorMessage"].as_str().unwrap();
                for part in ["does not accept", names[0], "TOOLS_EVENTS"] {
                    assert!(message.contains(part), "{message}");
                }
            }
        }
    }
}

/// Nor does an event decide what it is where the gateway's context cannot be read.
#[tokio::test]
async fn a_context_without_a_readable_tool_fails_the_invocation() {
    let environment = [("TOOLS_EVENTS", "agentcore,direct")];
    let mut platform = Platform::start(&mut toolbox(), &[], &environment).await;
    let whole = context("calc___Calculator_Add").to_string();
    let contexts = [
        r#"{"custom": {"bedrockAgentCoreGatewayId": "g"}}"#.to_owned(),
        r#"{"custom": {"bedrockAgentCoreToolName": ""}}"#.to_owned(),
        r#"{"custom": {"bedrockAgentCoreToolName": null}}"#.to_owned(),
        r#"{"custom": {"bedrockAgentCoreToolName": "calc___"}}"#.to_owned(),
        r#"{"bedrockAgentCoreX": null}"#.to_owned(),
        format!("\u{feff}{whole}"),
        whole[..whole.len() - 1].to_owned(),
        json!({"custom": whole}).to_string(),
        json!(whole).to_string(),
        json!([whole]).to_string(),
        whole.replace("{\"bedrock", "{\"\\ud800\": 1, \"bedrock"),
    ];
    let call = json!({"tool_id": "Calculator.Add", "input": {"a": 10, "b": 5}});
    for context in contexts {
        let (failed, error, _) = platform.invoke_with(&call, context.as_bytes()).await;
        assert!(failed, "{context} {error}");
        assert_eq!(error["errorType"], "UnsupportedEvent");
        let message = error["errorMessage"].as_str().unwrap();
        assert!(message.contains("bedrockAgentCoreToolName"), "{message}");
    }
}

/// AWS's handler, given the same context, asks its server for the same tool with the same arguments.
#[tokio::test]
#[ignore = "needs run-mcp-servers-with-aws-lambda; run tests/all"]
async fn the_handler_of_aws_picks_the_same_tool_and_answers_in_the_same_shape() {
    let cases = [
        ("calc___Calculator_Add", json!({"a": 10, "b": 5})),
        ("calc-2___System_GetTimestamp", json!({})),
        ("t____Calculator_Add", json!({"a": 1, "b": 2})),
        ("t___No___Such", json!({})),
        (
            "calc___Calculator_Add",
            json!({"name": "x", "arguments": {}}),
        ),
    ];
    let lines = cases.iter().zip([false, false, true, true, true]);
    let input: String = lines
        .map(|((tool, event), is_error)| {
            let custom = &context(tool)["custom"];
            json!({"event": event, "custom": custom, "isError": is_error}).to_string() + "\n"
        })
        .collect();
    let python = repository("target/venv-aws/bin/python");
    let printed = run(&python, "aws_handler", &[], &input);
    let environment = [("TOOLS_EVENTS", "agentcore")];
    let mut platform = Platform::start(&mut toolbox(), &[], &environment).await;
    let mut theirs = printed.lines().map(|it| serde_json::from_str(it).unwrap());
    let mut picked = Vec::new();
    for (tool, event) in &cases {
        let expected: Value = theirs.next().unwrap();
        assert_eq!(expected["arguments"], *event);
        let context = context(tool).to_string();
        let (failed, answer, _) = platform.invoke_with(event, context.as_bytes()).await;
        assert!(!failed, "{answer}");
        assert_eq!(shape(&answer), shape(&expected["answer"]), "{tool}");
        picked.push(expected["tool"].as_str().unwrap().to_owned());
    }
    let lines = platform.end();
    let lines = lines
        .iter()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    let ours: Vec<_> = lines
        .filter(|it| it["message"] == "call")
        .map(|it| it["tool"].as_str().unwrap().replace('.', "_"))
        .collect();
    assert_eq!(ours, picked);
}

/// Returns the names in an answer, and the types of its blocks.
fn shape(answer: &Value) -> Value {
    let fields = answer.as_object().unwrap().iter();
    let fields = fields.map(|(name, value)| match name.as_str() {
        "content" => {
            let blocks = value.as_array().unwrap().iter();
            let names = |block: &Value| {
                let mut names: Vec<_> = block.as_object().unwrap().keys().cloned().collect();
                names.sort();
                json!([names, block["type"]])
            };
            (name.clone(), blocks.map(names).collect())
        }
        "isError" => (name.clone(), value.clone()),
        _ => (name.clone(), json!(value.is_object())),
    });
    fields.collect()
}

#[test]
#[ignore = "needs botocore, and what tests/all builds"]
fn botocore_accepts_the_lists_that_the_functions_print() {
    for mut program in [toolbox(), faults()] {
        let list = exported(&mut program);
        let list = list.as_array().unwrap();
        assert!(!list.is_empty());
        assert_definitions(list);
        check_with_botocore(list).unwrap();
    }
}

#[tokio::test]
#[ignore = "needs moto, and what tests/all builds"]
async fn a_target_takes_the_list_that_the_function_prints() {
    let list = exported(&mut toolbox());
    let names: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].clone())
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
    let emulator = Emulator::start().await;
    let url = emulator.url();
    let mut environment = CREDENTIALS.to_vec();
    environment.push(("AWS_ENDPOINT_URL", url));
    let python = installed("python");
    let printed = run(&python, "gateway", &environment, &list.to_string());
    assert_eq!(printed.trim(), "5");
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
    let requests = page.lines().filter(|line| line.starts_with("aws "));
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
