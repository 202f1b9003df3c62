//! MCP's official conformance suite, in both eras.

use std::process::{Command, Stdio};

use test_support::{Running, isolated, node, repository};

/// The scenarios that no requirements contain. `tasks-mrtr-input` is not among them: a tool asks its
/// user before its call becomes a task, not in the task. Nor is `tasks-status-notifications`, which
/// checks nothing.
const OTHERS: [&str; 9] = [
    "http-custom-header-server-validation",
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-wire-fields",
];

/// Returns what the suite prints about the server at a URL.
fn run(url: &str, arguments: &[&str]) -> String {
    let output = Command::new(node())
        .arg(repository(
            "target/conformance/node_modules/.bin/conformance",
        ))
        .args(["server", "--url", &format!("{url}/mcp")])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stdout}\n{stderr}");
    stdout
}

fn server() -> Command {
    isolated(Command::new(env!("CARGO_BIN_EXE_conformance")))
}

#[test]
#[ignore = "needs npm's conformance suite; run tests/all"]
fn tasks_and_custom_headers_pass() {
    let (_running, url) = Running::serving(&mut server());
    for scenario in OTHERS {
        let printed = run(&url, &["--scenario", scenario]);
        assert!(printed.contains(", 0 failed, 0 warnings"), "{printed}");
        assert!(!printed.contains("Passed: 0/"), "{printed}");
    }
}

#[test]
#[ignore = "needs npm's conformance suite; run tests/all"]
fn both_revisions_pass() {
    let (_running, url) = Running::serving(&mut server());
    for requirements in ["2025-11-25", "2026-07-28"] {
        let file = format!("tests/conformance/expected-failures-{requirements}.yml");
        let file = repository(&file);
        let failures = ["--expected-failures", file.to_str().unwrap()];
        let arguments = [&["--requirements", requirements], &failures[..]].concat();
        let printed = run(&url, &arguments);
        assert!(printed.contains("Baseline check passed"), "{printed}");
    }
}
