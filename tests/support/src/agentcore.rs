//! The rules of `AgentCore` for the definitions of tools, as tests check them.
//!
//! `agentcore.schema.json` is written from the documentation, independently of the code that makes the
//! definitions.

use std::{collections::BTreeSet, process::Command};

use serde_json::{Value, json};

use crate::{fed, installed, repository};

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
    let mut check = Command::new("timeout");
    check
        .args(["--kill-after=5", "120"])
        .arg(installed("python"))
        .arg(repository("tests/openapi/check_tools.py"))
        .args(["--agentcore", "-"]);
    let output = fed(&mut check, &json!(definitions).to_string());
    if output.status.success() {
        return Ok(());
    }
    let [said, mistakes] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    Err(format!("{said}{mistakes}"))
}
