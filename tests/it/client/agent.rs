//! Runs the agent example.

use std::process::Command;

use test_support::{Running, repository};

use crate::tools::program;

#[test]
fn the_agent_example_makes_the_calls_that_a_model_requests() {
    // The folder of examples is next to the folder of test programs.
    let program_path = std::env::current_exe().unwrap();
    let target = program_path.ancestors().nth(2).unwrap();
    let agent = target.join("examples/agent");
    assert!(
        agent.exists(),
        "the example is not built; run cargo test --features client, which does it"
    );
    let (_running, url) = Running::serving(&mut program());
    let output_for = |url: &str| {
        let output = Command::new(&agent).arg(url).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stdout}{stderr}");
        stdout
    };
    let stdout = output_for(&format!("{url}/mcp"));
    for line in [
        "5 tools, 5 of them the newest versions",
        "OpenAI: Calculator_Add({\"a\":10,\"b\":5}) = {\"result\":15}",
        "Anthropic: Calculator_Add({\"a\":\"ten\"}) = The input is invalid:",
        "Anthropic: Doorbell_Ring({\"doorbell_id\":\"doorbell42\"}) = {\"result\":null}",
    ] {
        assert!(stdout.contains(line), "{line} is not in\n{stdout}");
    }
    let stdout = output_for(&url);
    for line in [
        "7 tools, 5 of them the newest versions",
        "OpenAI: Calculator_Add({\"a\":10,\"b\":5}) = 15",
        "Anthropic: Calculator_Add({\"a\":\"ten\"}) = Some input parameters are invalid (a: Must be a number; b: Is required)",
        "Anthropic: Doorbell_Ring({\"doorbell_id\":\"doorbell42\"}) = null",
    ] {
        assert!(stdout.contains(line), "{line} is not in\n{stdout}");
    }
    let add = stdout
        .lines()
        .filter(|line| line.contains("Calculator_Add") && line.starts_with('{'));
    let offers: Vec<serde_json::Value> = add
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (name, schema) = ("Calculator_Add", |offer: &serde_json::Value| {
        offer["type"] == "object"
    });
    let [openai, anthropic] = offers.as_slice() else {
        panic!("{stdout}")
    };
    assert_eq!(openai["type"], "function");
    assert_eq!(openai["function"]["name"], name);
    assert!(
        openai["function"]["description"].is_string() && schema(&openai["function"]["parameters"])
    );
    assert_eq!(anthropic["name"], name);
    assert!(anthropic["description"].is_string() && schema(&anthropic["input_schema"]));
    let source = std::fs::read_to_string(repository("examples/agent.rs")).unwrap();
    assert!(source.lines().count() < 120);
}
