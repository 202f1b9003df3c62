//! Claude Code connects as the pages say, and signs its user in.

use std::process::Command;

use serde_json::json;
use test_support::{
    claude_code::ClaudeCode,
    documents::{ADDRESS, DEPLOYED, blocks, is_typed, pages},
    openid::{Act, Browser, OpenId},
};

use crate::{
    documents::KEY,
    sign_in::serve_mail,
    support::{Running, faults, installed, toolbox},
};

const CONNECTED: &str = "✔ Connected";
const NEEDS_AUTHENTICATION: &str = "! Needs authentication";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's Claude Code and a provider of npm; run .ci/long"]
async fn the_commands_of_the_pages_connect_claude_code() {
    let provider = OpenId::start();
    let (_open, open) = Running::serving(&mut toolbox());
    let key = [("TOOLS_AUTH", "api-key"), ("TOOLS_API_KEY", KEY)];
    let (_with_key, with_key) = Running::serving(toolbox().envs(key));
    let (_signed_in, signed_in) = serve_mail(&provider);
    let claude = ClaudeCode::new("pages");
    let texts = pages();
    // Other tests type the commands of the other pages, but that of the README does not run this one.
    let texts = texts
        .iter()
        .filter(|(path, _)| path == "README.md" || !is_typed(path));
    let blocks = texts.flat_map(|(path, text)| blocks(path, text));
    let (mut count, mut count_with_key) = (0, 0);
    for block in blocks.filter(|block| block.mark.is_none()) {
        let lines = block.text.lines();
        for line in lines.filter(|line| line.starts_with("claude mcp add")) {
            let has_key = line.contains("YOUR_KEY");
            let (deployed, expected) = if has_key {
                (&with_key, CONNECTED)
            } else {
                (&signed_in, NEEDS_AUTHENTICATION)
            };
            let expected = if line.contains(ADDRESS) {
                CONNECTED
            } else {
                expected
            };
            let line = line.replace(ADDRESS, &open).replace(DEPLOYED, deployed);
            let typed = line.replace("YOUR_KEY", KEY);
            assert_eq!(claude.state_after(&typed), expected, "{}", block.place);
            count += 1;
            if has_key {
                let (without_key, _) = line.split_once(" --header").unwrap();
                for line in [&line.replace("YOUR_KEY", "ANOTHER_KEY"), without_key] {
                    let state = claude.state_after(line);
                    assert!(state.starts_with("✘ Failed to connect"), "{line}: {state}");
                }
                count_with_key += 1;
            }
        }
    }
    // The README, with a key, and with a user who signs in.
    assert!(count >= 3 && count_with_key > 0, "{count}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, npm's Claude Code and a provider of npm; run .ci/long"]
async fn claude_code_signs_its_user_in() {
    let provider = OpenId::start();
    let (running, url) = serve_mail(&provider);
    let claude = ClaudeCode::new("sign-in");
    claude.run(&format!("claude mcp add --transport http tools {url}/mcp"));
    assert!(claude.run("claude mcp list").contains(NEEDS_AUTHENTICATION));

    // It signs in only at a terminal.
    let terminal = "-c 'import pty, sys; pty.spawn(sys.argv[1:])'";
    let python = installed("python");
    let login = "claude mcp login --no-browser tools";
    let login = format!("exec '{}' {terminal} {login}", python.display());
    let login = Running::start(&mut claude.shell(Command::new("sh"), &login));
    let printed = login.line_with("/auth?", 30);
    let mut parts = printed.split(['\u{7}', '\u{1b}']);
    let link = parts.find(|part| part.starts_with(&provider.url));
    let link = link.unwrap_or_else(|| panic!("{printed}"));
    let page = Browser::of("alice").follow(link, Act::Allow).await;
    assert_eq!(page.status, 200, "{page:?}");
    login.line_with("Authenticated", 30);

    assert!(claude.run("claude mcp list").contains(CONNECTED));
    let said = claude.ask("Mail_Whose", json!({})).await;
    assert_eq!(said.trim(), r#"The tool said: {"result":"alice"}"#);
    let caller = format!(r#"caller="token {} alice""#, provider.url);
    let logged = running.line_with(&caller, 10);
    let dialect = r#"dialect="mcp-2026-07-28""#;
    assert!(logged.contains(dialect), "{logged}");
}

/// A header that its user has configured brings the secret of a tool.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what tests/all builds, and npm's Claude Code; run .ci/long"]
async fn claude_code_sends_a_secret_in_a_header() {
    let mut faults = faults();
    faults.env("TOOLS_SECRET_HEADERS", "KEY=X-Customer-Key");
    let (_running, url) = Running::serving(&mut faults);
    let claude = ClaudeCode::new("header");
    for (header, expected) in [
        (
            "--header 'X-Customer-Key: abc-123'",
            "{\"result\":\"done\"}",
        ),
        (
            "",
            "The client has to send the secret 'KEY' in the header x-customer-key.",
        ),
    ] {
        claude.run(&format!(
            "claude mcp add --transport http tools {url}/mcp {header}"
        ));
        let said = claude.ask("Fault_Do", json!({"kind": "nothing"})).await;
        assert!(said.contains(expected), "{said}");
        claude.run("claude mcp remove tools");
    }
}
