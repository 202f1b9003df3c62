//! The commands of the pages that deploy to AWS, typed as they are printed.
//!
//! Moto takes the place of AWS. What it lacks is played: Lambda, an HTTP API, a function URL and a
//! gateway pass requests on to the deployed binary; the key of Twilio, and the model of an agent.

mod account;
mod shell;

use std::{fs, process::Command, time::Duration};

use test_support::documents::{Block, FIRST_DEPLOYMENT, blocks, is_expected};

use self::{account::Account, shell::Shell};
use crate::{
    clients::stdout_of,
    support::{installed, repository},
};

/// A page whose commands have been typed.
struct Typed {
    account: Account,
    shell: Shell,
    /// The number of blocks that ran, of those with an output on the page, and of deployments.
    counts: [usize; 3],
}

/// Types the commands of a page in one shell. The model of Claude Code asks for this tool.
async fn typed(path: &str, tool: &str) -> Typed {
    let page = fs::read_to_string(repository(path)).unwrap();
    let mut account = Account::start().await;
    let mut shell = Shell::start(&account.variables(), tool).await;
    let blocks = blocks(path, &page);
    let mut counts = [0; 3];
    for (index, block) in blocks.iter().enumerate() {
        if block.language != "console" {
            continue;
        }
        if block.mark.is_some() {
            counts[2] += deploy(&mut account, &mut shell, block).await;
            continue;
        }
        account.take_logs();
        account.wait_for_a_minute_that_is_long_enough().await;
        let next = blocks.get(index + 1);
        let output = next.filter(|next| next.language == "text" && next.mark.is_none());
        tokio::task::block_in_place(|| run(&mut shell, block, output));
        counts[0] += 1;
        counts[1] += usize::from(output.is_some());
    }
    Typed {
        account,
        shell,
        counts,
    }
}

/// Plays the deployments in a block that nothing can run; returns how many there are.
async fn deploy(account: &mut Account, shell: &mut Shell, block: &Block) -> usize {
    let lines = block.text.lines();
    let lines: Vec<_> = lines.filter(|it| it.starts_with("sam deploy ")).collect();
    for line in &lines {
        // With the values of the shell's variables.
        let (line, _) = shell.run(&format!("CLIENT_ID=toolbox; echo {line}"));
        account.deploy(line.trim(), &shell.folder).await;
    }
    lines.len()
}

/// Runs a block, and compares its output with that on the page.
fn run(shell: &mut Shell, block: &Block, expected: Option<&Block>) {
    // In proportion: a tool of 40 seconds behind an API that gives up after 30.
    let mut commands = block.text.replace("step_ms=1000", "step_ms=100");
    if !block.place.starts_with(FIRST_DEPLOYMENT) {
        // The first command that fails ends the shell, so that no output arrives any more.
        commands = format!("set -e -o pipefail\n{commands}set +e +o pipefail\n");
    }
    let (mut output, mut code) = shell.run(&commands);
    let is_right = |output: &str| expected.is_none_or(|it| is_expected(&it.text, output));
    // Lines reach the log after the responses.
    let mut attempts = if commands.contains("lines '") { 10 } else { 0 };
    while attempts > 0 && !is_right(&output) {
        std::thread::sleep(Duration::from_millis(500));
        (output, code) = shell.run(&commands);
        attempts -= 1;
    }
    assert_eq!(code, 0, "{}: {output}", block.place);
    assert!(is_right(&output), "{}: {output}", block.place);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, moto, the AWS CLI, and npm's Inspector and Claude Code; run .ci/long"]
async fn the_commands_of_a_first_deployment_work() {
    let page = typed(FIRST_DEPLOYMENT, "mcp__tools__Calculator_Add").await;
    assert_eq!(page.counts, [15, 15, 5]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, the AWS CLI, AWS's client for MCP, Claude Code, and what sam build makes; run .ci/long"]
async fn an_agent_calls_a_tool_through_a_gateway() {
    let tool = "mcp__tools__toolbox___Calculator_Add";
    let guide = typed("docs/agentcore.md", tool).await;
    assert_eq!(guide.counts, [8, 8, 2]);
    let mut lint = Command::new(installed("cfn-lint"));
    let output = lint.arg(guide.shell.folder.join("gateway.yaml")).output();
    assert_eq!(stdout_of(&output.unwrap()), "");
}

/// Returns the actions that CloudFormation's schemas name for the template and this policy does not
/// allow.
fn missing_in(policy: &str, account: &Account) -> String {
    let template = repository("template.yaml").display().to_string();
    account.play(&["permissions", &template], policy)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, the AWS CLI, and what sam build makes; run .ci/long"]
async fn a_team_deploys_a_function_and_rolls_it_back() {
    let guide = typed("docs/production.md", "none").await;
    assert_eq!(guide.counts[0], 7);
    assert_eq!(guide.counts[2], 3);
    let policy = fs::read_to_string(guide.shell.folder.join("deploy.json")).unwrap();
    assert_eq!(missing_in(&policy, &guide.account).trim(), "");
    for action in ["sqs:", "sns:", "iam:*Role"] {
        let narrower = policy.replace(&format!("{action}*\""), &format!("{action}X\""));
        assert_ne!(narrower, policy);
        let missing = missing_in(&narrower, &guide.account);
        let kind = action.split('*').next().unwrap();
        assert!(missing.contains(kind), "{missing}");
    }
}
