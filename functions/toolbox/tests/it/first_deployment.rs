//! The steps of `docs/first-deployment.md`, and the script that collects the answers.
//!
//! Moto takes the place of AWS. What it lacks is played: deployments, by a script that creates what the
//! expanded template describes; Lambda, an HTTP API and a function URL, by servers that pass
//! requests on to the deployed binary; the key of Twilio, and the model of an agent.

pub(crate) mod account;
mod doors;
pub(crate) mod shell;

use std::{collections::BTreeSet, fs};

use test_support::documents::{Block, FIRST_DEPLOYMENT, blocks, is_expected};

use self::{account::Account, shell::Shell};
use crate::support::repository;

fn page() -> String {
    fs::read_to_string(repository(FIRST_DEPLOYMENT)).unwrap()
}

/// Returns the numbers of the lines with the steps' headings, from 1.
fn steps(page: &str) -> Vec<usize> {
    let lines = page.lines().enumerate();
    let headings = lines.filter(|(_, line)| {
        let heading = line.strip_prefix("## ").unwrap_or_default();
        heading.starts_with(|first: char| first.is_ascii_digit())
    });
    let numbered = headings.enumerate().map(|(index, (line, heading))| {
        assert!(
            heading.starts_with(&format!("## {}. ", index + 1)),
            "{heading}"
        );
        line + 1
    });
    numbered.collect()
}

#[test]
fn an_expected_output_is_compared_as_a_whole() {
    for (expected, actual, is_match) in [
        ("a\n", "a", true),
        ("a", "ab", false),
        ("a…c…", "abcd", true),
        ("a…c", "abcd", false),
        ("…b…b", "b", false),
        ("a…b", "a\nb", false),
        ("a\n…\nb", "a\nb", true),
        ("a\n…\nb\n…", "a\nx\nb\ny\nz", true),
        ("a\n…\nb", "a\nb\nc", false),
        ("…", "", true),
    ] {
        assert_eq!(
            is_expected(expected, actual),
            is_match,
            "{expected} {actual}"
        );
    }
}

#[test]
fn the_page_has_at_most_24_steps_of_a_few_commands() {
    let page = page();
    let steps = steps(&page);
    assert!((10..=24).contains(&steps.len()), "{steps:?}");
    let blocks = blocks(FIRST_DEPLOYMENT, &page);
    let console = blocks.iter().filter(|block| block.language == "console");
    let mut with_commands = BTreeSet::new();
    for block in console {
        assert!(block.text.lines().count() <= 3, "{}", block.place);
        let line: usize = block.place.rsplit(':').next().unwrap().parse().unwrap();
        with_commands.insert(steps.iter().filter(|step| **step < line).count());
    }
    assert_eq!(with_commands, (1..=steps.len()).collect());
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

/// Without credentials, each section has its error.
fn check_errors(shell: &mut Shell) {
    let aws = "aws() { echo 'Unable to locate credentials' >&2; return 255; }; export -f aws";
    let script = "rm first-deployment.txt; docs/first-deployment.sh tools";
    let (output, code) = shell.run(&format!("{aws}; {script}"));
    assert_eq!(code, 0, "{output}");
    let answers = fs::read_to_string(shell.folder.join("first-deployment.txt")).unwrap();
    let sections: Vec<_> = answers.split("\n== ").collect();
    let (codes, others) = sections.split_last().unwrap();
    for section in others {
        let (name, text) = section.trim_start_matches("== ").split_once('\n').unwrap();
        let is_about_aws = text.contains("Unable to locate credentials");
        assert!(is_about_aws || text.contains("curl: "), "{section}");
        assert!(!codes.contains(&format!("{name}: 0\n")), "{codes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, moto, the AWS CLI, and npm's Inspector and Claude Code; run tests/all"]
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
    tokio::task::block_in_place(|| check_errors(&mut shell));
}
