//! A short run of `benches/soak`, so that the command and what it expects stay right.

use std::process::Command;

use test_support::built;

#[test]
#[ignore = "needs the deployed function; run tests/all"]
fn every_answer_of_a_short_run_is_right() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soak"));
    let output = command
        .arg("--program")
        .arg(built("sam-faults/Faults/bootstrap"))
        .args(["--minutes", "0.4", "--answers-only"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    // A run without a load would have no wrong answers either.
    for kind in [
        "MCP 2026-07-28",
        "first call",
        "replay",
        "challenge",
        "blocked thread",
    ] {
        assert!(text.contains(&format!("| {kind} | ")), "no {kind}: {text}");
    }
}
