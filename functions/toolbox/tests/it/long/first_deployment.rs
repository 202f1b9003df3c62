//! The steps of `docs/first-deployment.md`, and the script that collects the answers.
//!
//! Moto takes the place of AWS. What it lacks is played: deployments, by a script that creates what the
//! expanded template describes; Lambda, an HTTP API and a function URL, by servers that pass
//! requests on to the deployed binary; the key of Twilio, and the model of an agent.

pub(super) mod account;
mod doors;
pub(super) mod shell;

use std::{collections::BTreeSet, fs};

use test_support::documents::{Block, FIRST_DEPLOYMENT, blocks, is_expected};

use self::{account::Account, shell::Shell};
use crate::support::repository;

fn page() -> String {
    fs::read_to_string(repository(FIRST_DEPLOYMENT)).unwrap()
}

/// Runs a block and compares its output with the block after it.
fn run(shell: &mut Shell, block: &Block, expected: &Block) {
    assert_eq!(expected.language, "text", "{}", expected.place);
    assert_eq!(expected.mark, None, "{}", expected.place);
    // In proportion: a tool of 40 seconds behind an API that gives up after 30.
    let commands = block.text.replace("step_ms=1000", "step_ms=100");
    let (mut output, mut code) = shell.run(&commands);
    // Lines reach the log after the responses.
    let mut attempts = if commands.contains("lines '") { 10 } else { 0 };
    while attempts > 0 && !is_expected(&expected.text, &output) {
        std::thread::sleep(std::time::Duration::from_millis(500));
        (output, code) = shell.run(&commands);
        attempts -= 1;
    }
    assert_eq!(code, 0, "{}: {output}", block.place);
    assert!(
        is_expected(&expected.text, &output),
        "{}: {output}\nis not\n{}",
        block.place,
        expected.text
    );
}

/// Sections of what the script writes, in either of its runs, each with a part of its text.
const ANSWERS: [(&str, &str); 16] = [
    ("stack: parameters", "function-url"),
    ("stack: outputs", "ToolboxUrl"),
    ("stack: state", "COMPLETE"),
    ("function: settings", "TOOLS_QUOTAS"),
    ("health", r#"{"status":"ok"}"#),
    ("list", "Calculator.Add@1.0.0"),
    ("call: OXP", r#""value":15"#),
    ("call: MCP", r#""structuredContent":{"result":15}"#),
    ("call: wrong key", "HTTP/1.1 401"),
    ("call: repeated", "idempotent-replay: true"),
    ("call: direct", "The stack answers no direct calls."),
    ("log: calls", r#""outcome":"failure""#),
    ("log: cold starts", "initDurationMs"),
    ("metrics", "Calls\tCalculator.Add, 10.0.0"),
    ("alarms", "-LoggedErrors-"),
    ("exit codes", "call: OXP: 0"),
];

/// Checks the file that the script has written.
fn check_answers(shell: &Shell, key: &str) {
    let answers = fs::read_to_string(shell.folder.join("first-deployment.txt")).unwrap();
    for private in [key, "123456789012", "127.0.0.1", "AC000"] {
        assert!(!answers.contains(private), "{private}\n{answers}");
    }
    let sections: Vec<_> = answers.split("\n== ").collect();
    for (name, text) in ANSWERS {
        let heading = format!("{name}\n");
        let mut named = sections.iter().filter(|it| it.starts_with(&heading));
        let is_there = named.any(|it| it.contains(text));
        assert!(is_there, "{name}: {text}\n{answers}");
    }
    let reported = answers.lines().filter(|line| line.starts_with("== "));
    let reported: BTreeSet<_> = reported.collect();
    let codes = sections.last().unwrap().trim_end().lines().skip(1);
    assert_eq!(codes.count() + 1, reported.len());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, moto, the AWS CLI, and npm's Inspector and Claude Code; run .ci/long"]
async fn the_commands_of_a_first_deployment_work() {
    let page = page();
    let mut account = Account::start().await;
    let tool = "mcp__tools__Calculator_Add";
    let mut shell = Shell::start("first-deployment", &account.variables(), tool).await;
    let blocks = blocks(FIRST_DEPLOYMENT, &page);
    let (mut deployed, mut ran) = (0, 0);
    for (block, next) in blocks.iter().zip(&blocks[1..]) {
        if block.language != "console" {
            continue;
        }
        if block.mark.is_some() {
            let lines = block.text.lines();
            for line in lines.filter(|line| line.starts_with("sam deploy ")) {
                account.deploy(line, &shell.folder).await;
                deployed += 1;
            }
            continue;
        }
        let readers = ["lines ", "cloudwatch ", "first-deployment.sh "];
        if readers.iter().any(|reader| block.text.contains(reader)) {
            account.take_logs().await;
        }
        account.wait_for_a_minute_that_is_long_enough().await;
        tokio::task::block_in_place(|| run(&mut shell, block, next));
        ran += 1;
    }
    assert!(deployed == 6 && ran > 20, "{deployed} {ran}");
    let (key, _) = shell.run("echo \"$KEY\"");
    check_answers(&shell, key.trim());
}
