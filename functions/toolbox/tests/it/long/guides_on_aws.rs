//! The commands of the guides that deploy to AWS, typed as they are printed. The account is played, as
//! for a first deployment.

use std::{fs, process::Command};

use test_support::documents::{Block, blocks, is_expected};

use super::first_deployment::{account::Account, shell::Shell};
use crate::{
    clients::stdout_of,
    support::{installed, repository},
};

/// A guide whose commands have been typed.
struct Typed {
    account: Account,
    shell: Shell,
    /// The number of blocks that ran, and of deployments that were played.
    counts: (usize, usize),
}

/// Runs a block, and compares its output with the block after it, if that is one. The first command that
/// fails ends the shell, so that no output arrives any more.
fn run(shell: &mut Shell, block: &Block, next: Option<&Block>) {
    let commands = format!("set -e -o pipefail\n{}set +e +o pipefail\n", block.text);
    let (output, code) = shell.run(&commands);
    assert_eq!(code, 0, "{}: {output}", block.place);
    let expected = next.filter(|next| next.language == "text" && next.mark.is_none());
    if let Some(expected) = expected {
        assert!(
            is_expected(&expected.text, &output),
            "{}: {output}\nis not\n{}",
            block.place,
            expected.text
        );
    }
}

/// Plays the deployments in a block that nothing can run; returns how many there are.
async fn deploy(account: &mut Account, shell: &mut Shell, block: &Block) -> usize {
    let lines = block.text.lines();
    let lines: Vec<_> = lines.filter(|it| it.starts_with("sam deploy ")).collect();
    for line in &lines {
        // With the values of the shell's variables.
        let (line, _) = shell.run(&format!("echo {line}"));
        account.deploy(line.trim(), &shell.folder).await;
    }
    lines.len()
}

/// Types the commands of a guide in one shell. The model of Claude Code asks for this tool.
async fn typed(guide: &str, tool: &str) -> Typed {
    let path = format!("docs/{guide}.md");
    let page = fs::read_to_string(repository(&path)).unwrap();
    let mut account = Account::start().await;
    let mut shell = Shell::start(guide, &account.variables(), tool).await;
    let blocks = blocks(&path, &page);
    let (mut ran, mut deployed) = (0, 0);
    for (index, block) in blocks.iter().enumerate() {
        if block.language != "console" {
            continue;
        }
        if block.mark.is_some() {
            deployed += deploy(&mut account, &mut shell, block).await;
            continue;
        }
        account.take_logs().await;
        tokio::task::block_in_place(|| run(&mut shell, block, blocks.get(index + 1)));
        ran += 1;
    }
    Typed {
        account,
        shell,
        counts: (ran, deployed),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, the AWS CLI, AWS's client for MCP, Claude Code, and what sam build makes; run .ci/long"]
async fn an_agent_calls_a_tool_through_a_gateway() {
    let tool = "mcp__tools__toolbox___Calculator_Add";
    let guide = typed("guide-agentcore", tool).await;
    assert_eq!(guide.counts, (8, 2));
    let mut lint = Command::new(installed("cfn-lint"));
    let output = lint.arg(guide.shell.folder.join("gateway.yaml")).output();
    assert_eq!(stdout_of(&output.unwrap()), "");
}

/// Returns the actions that CloudFormation's schemas name for a stack and this policy does not allow.
async fn missing_in(policy: &str, account: &Account) -> String {
    let template = repository("template.yaml").display().to_string();
    let words = [
        "permissions",
        &template,
        "tools",
        "AlarmEmail=ops@example.com",
        "Tasks=yes",
    ];
    account.play(&words.map(str::to_owned), policy).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs moto, the AWS CLI, and what sam build makes; run .ci/long"]
async fn a_team_deploys_a_function_and_rolls_it_back() {
    let guide = typed("guide-production", "none").await;
    assert_eq!(guide.counts, (7, 3));
    let policy = fs::read_to_string(guide.shell.folder.join("deploy.json")).unwrap();
    assert_eq!(missing_in(&policy, &guide.account).await.trim(), "");
    for action in ["sqs:", "sns:", "iam:*Role"] {
        let narrower = policy.replace(&format!("{action}*\""), &format!("{action}X\""));
        assert_ne!(narrower, policy);
        let missing = missing_in(&narrower, &guide.account).await;
        assert!(
            missing.contains(action.split('*').next().unwrap()),
            "{missing}"
        );
    }
}
