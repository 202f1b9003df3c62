//! The example of an agent, run as a program.

use std::process::Command;

use test_support::{Running, repository};

use crate::tools::program;

#[test]
fn the_example_runs_what_a_model_has_asked_for() {
    // Examples lie beside the folder of tests.
    let tests = std::env::current_exe().unwrap();
    let agent = tests.ancestors().nth(2).unwrap().join("examples/agent");
    assert!(
        agent.exists(),
        "the example is not built; run cargo test --features client, which does it"
    );
    let (_running, url) = Running::serving(&mut program());
    let output = Command::new(agent).arg(&url).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{error}");
    for line in [
        "7 tools, 5 of them the newest versions",
        "OpenAI: Calculator_Add({\"a\":10,\"b\":5}) = 15",
        "Anthropic: Calculator_Add({\"a\":\"ten\"}) = Some input parameters are invalid (a: Must be a number; b: Is required)",
        "Anthropic: Doorbell_Ring({\"doorbell_id\":\"doorbell42\"}) = null",
    ] {
        assert!(said.contains(line), "{line} is not in\n{said}");
    }
    let add = said
        .lines()
        .filter(|line| line.contains("Calculator_Add") && line.starts_with('{'));
    let offers: Vec<serde_json::Value> = add
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (name, schema) = ("Calculator_Add", |offer: &serde_json::Value| {
        offer["type"] == "object"
    });
    let [openai, anthropic] = offers.as_slice() else {
        panic!("{said}")
    };
    assert_eq!(openai["type"], "function");
    assert_eq!(openai["function"]["name"], name);
    assert!(
        openai["function"]["description"].is_string() && schema(&openai["function"]["parameters"])
    );
    assert_eq!(anthropic["name"], name);
    assert!(anthropic["description"].is_string() && schema(&anthropic["input_schema"]));
    let source = std::fs::read_to_string(repository("examples/agent.rs")).unwrap();
    assert!(source.lines().count() < 80);
}
