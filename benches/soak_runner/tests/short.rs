//! Short runs of `benches/soak`, so that the command and what it expects stay right, and two faults
//! that it must find.

use std::process::{Command, Output};

use test_support::built;

fn soak(options: &str, environment: &[(&str, &str)]) -> (Output, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soak"));
    let output = command
        .arg(built("sam/Toolbox/bootstrap"))
        .arg(built("sam-faults/Faults/bootstrap"))
        .args(options.split(' '))
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    (output, text.concat())
}

#[test]
#[ignore = "needs the deployed functions; run tests/all"]
fn every_answer_of_a_short_run_is_right() {
    let (output, text) = soak("--minutes 0.3 --answers-only", &[]);
    assert!(output.status.success(), "{text}");
    // A run without a load would have no wrong answers either.
    for kind in ["recorded event", "sum", "first call", "replay", "challenge"] {
        assert!(text.contains(&format!("| {kind} | ")), "no {kind}: {text}");
    }
}

#[test]
#[ignore = "needs the deployed functions; run tests/all"]
fn wrong_answers_are_counted() {
    let options = "--minutes 0.3 --answers-only";
    let (output, text) = soak(options, &[("WRONG_EVERY", "2")]);
    assert!(!output.status.success(), "{text}");
    let wrong = text.lines().find_map(|line| line.strip_prefix("| sum | "));
    let wrong = wrong.and_then(|line| line.trim_end_matches(" |").rsplit(' ').next());
    let wrong: u64 = wrong.unwrap().parse().unwrap();
    assert!(
        wrong > 0 && text.contains(&format!("soak: {wrong} wrong answers")),
        "{text}"
    );
}

#[test]
#[ignore = "needs the deployed functions; run tests/all"]
fn a_leak_is_found() {
    // In an hour, 100 bytes are enough. A slow machine answers few requests in this time.
    let leak = [("LEAKED_BYTES", "1000000")];
    let (output, text) = soak("--minutes 0.3", &leak);
    assert!(!output.status.success(), "{text}");
    let name = "faults: anonymous memory in KiB";
    assert!(text.contains(&format!("{name} grew")), "{text}");
    // More than a short run needs for itself.
    let row = text
        .lines()
        .find(|line| line.starts_with(&format!("| {name}")));
    let growth = row.unwrap().split('+').nth(1).unwrap();
    let growth: u64 = growth.split(' ').next().unwrap().parse().unwrap();
    assert!(growth > 5_000, "{text}");
}
