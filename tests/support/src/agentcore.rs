//! The rules of `AgentCore` for the definitions of tools, as tests check them.
//!
//! `agentcore.schema.json` is written from the documentation, independently of the code that makes the
//! definitions.

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{installed, repository};

/// Asserts the published rules for a list of definitions.
pub fn assert_definitions(definitions: &[Value]) {
    let rules: Value = serde_json::from_str(include_str!("agentcore.schema.json")).unwrap();
    let validator = jsonschema::draft202012::new(&rules).unwrap();
    let mut names = BTreeSet::new();
    for definition in definitions {
        let errors = validator.iter_errors(definition);
        let found: Vec<_> = errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(found.is_empty(), "{found:#?} in {definition:#}");
        let name = definition["name"].to_string();
        assert!(names.insert(name), "{definition} is listed twice");
    }
}

/// Lets botocore's model of the API check definitions (`tests/openapi/check_tools.py`).
///
/// # Errors
/// The output of a check that failed.
pub fn check_with_botocore(definitions: &[Value]) -> Result<(), String> {
    let mut child = Command::new("timeout")
        .args(["--kill-after=5", "120"])
        .arg(installed("python"))
        .arg(repository("tests/openapi/check_tools.py"))
        .args(["--agentcore", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = json!(definitions).to_string();
    // The check may end before it has read all of it.
    let writer = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    if output.status.success() {
        return Ok(());
    }
    let [said, mistakes] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    Err(format!("{said}{mistakes}"))
}
