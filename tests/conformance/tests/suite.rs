//! MCP's official conformance suite, in both eras.

use std::process::{Command, Stdio};

use test_support::{Running, isolated, node, repository};

fn passes(requirements: &str) {
    let mut server = isolated(Command::new(env!("CARGO_BIN_EXE_conformance")));
    let (_running, url) = Running::serving(&mut server);
    let folder = "tests/conformance";
    let failures = repository(&format!("{folder}/expected-failures-{requirements}.yml"));
    let output = Command::new(node())
        .arg(repository(
            "target/conformance/node_modules/.bin/conformance",
        ))
        .args(["server", "--url", &format!("{url}/mcp")])
        .args(["--requirements", requirements, "--expected-failures"])
        .arg(failures)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(
        stdout.contains("Baseline check passed"),
        "{stdout}\n{stderr}"
    );
}

#[test]
#[ignore = "needs npm's conformance suite; run tests/all"]
fn the_revision_of_2025_11_25_passes() {
    passes("2025-11-25");
}

#[test]
#[ignore = "needs npm's conformance suite; run tests/all"]
fn the_revision_of_2026_07_28_passes() {
    passes("2026-07-28");
}
