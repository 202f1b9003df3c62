//! Runs the agent example.

use std::process::Command;

use test_support::Running;

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
    for (url, count, value, invalid) in [
        (
            format!("{url}/mcp"),
            "5 tools",
            r#"{\"result\":15}"#,
            "The input is invalid:",
        ),
        (
            url,
            "7 tools",
            "15",
            "Some input parameters are invalid (a: Must be a number; b: Is required)",
        ),
    ] {
        let stdout = output_for(&url);
        for text in [
            count,
            &format!(
                r#"OpenAI gets {{"role":"tool","tool_call_id":"call_1","content":"{value}"}}"#
            ),
            r#"Anthropic gets {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1""#,
            invalid,
            r#""is_error":true},{"type":"tool_result","tool_use_id":"toolu_2""#,
        ] {
            assert!(stdout.contains(text), "{text} is not in\n{stdout}");
        }
        for listed in [
            r#"OpenAI gets {"type":"function","function":{"name":"Calculator_Add""#,
            r#"Anthropic gets {"name":"Calculator_Add""#,
        ] {
            assert_eq!(stdout.matches(listed).count(), 1, "{listed} in\n{stdout}");
        }
    }
}
