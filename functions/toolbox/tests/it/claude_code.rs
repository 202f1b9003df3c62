//! Claude Code, an agent that needs no account for this: it connects, and signs its user in.
//!
//! It comes from npm. `tests/all` installs it and runs these tests; a plain `cargo test` lists them
//! as ignored.

use std::{fs, path::PathBuf, process::Command};

use test_support::{
    documents::{ADDRESS, blocks, pages},
    openid::{Act, Browser, OpenId},
};

use crate::{
    clients::stdout_of,
    documents::DEPLOYED,
    mcp_clients::limited,
    sign_in::serve_mail,
    support::{Running, installed, repository, toolbox},
};

/// The program for this platform, which npm installs without running the package's scripts.
fn program() -> PathBuf {
    let packages = fs::read_dir(repository("target/conformance/node_modules/@anthropic-ai"));
    let packages = packages.expect("run tests/all, which installs Claude Code");
    let mut programs = packages.map(|package| package.unwrap().path().join("claude"));
    let program = programs.find(|program| program.is_file());
    program.expect("Claude Code has no package for this platform")
}

/// Claude Code with settings of its own.
struct ClaudeCode {
    home: PathBuf,
}

impl ClaudeCode {
    fn new(test: &str) -> Self {
        let name = format!("claude-{test}-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).unwrap();
        Self { home }
    }

    /// Lets a shell run a command as a page prints it.
    fn shell(&self, mut command: Command, script: &str) -> Command {
        command.args(["-c", script]).current_dir(&self.home);
        command.env_clear();
        let path = std::env::var("PATH").unwrap();
        let folder = program().parent().unwrap().display().to_string();
        command.env("PATH", format!("{folder}:{path}"));
        command.env("HOME", &self.home);
        command.env("CLAUDE_CODE_TMPDIR", &self.home);
        command.env("DISABLE_TELEMETRY", "1");
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        // Nothing listens there: a request to any other address fails.
        command.env("HTTP_PROXY", "http://127.0.0.1:9");
        command.env("HTTPS_PROXY", "http://127.0.0.1:9");
        command.env("NO_PROXY", "127.0.0.1,localhost");
        command
    }

    fn run(&self, script: &str) -> String {
        let mut command = self.shell(limited("sh"), script);
        let output = tokio::task::block_in_place(|| command.output());
        stdout_of(&output.unwrap())
    }

    /// Returns the line for the server that a command has added, and removes the server again.
    fn state_after(&self, add: &str) -> String {
        self.run(add);
        let listed = self.run("claude mcp list");
        self.run("claude mcp remove tools");
        let mut lines = listed.lines();
        let line = lines.find(|line| line.starts_with("tools: "));
        let line = line.unwrap_or_else(|| panic!("{add}: {listed}"));
        line.rsplit(" - ").next().unwrap().to_owned()
    }
}

impl Drop for ClaudeCode {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

const CONNECTED: &str = "✔ Connected";
const NEEDS_AUTHENTICATION: &str = "! Needs authentication";

/// A server that requires the key in the pages.
fn with_key() -> (Running, String) {
    let mut command = toolbox();
    command.env("TOOLS_AUTH", "api-key");
    Running::serving(command.env("TOOLS_API_KEY", "YOUR_KEY"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm's Claude Code and a provider of npm; run tests/all"]
async fn the_commands_of_the_pages_connect_claude_code() {
    let provider = OpenId::start();
    let (_open, open) = Running::serving(&mut toolbox());
    let (_with_key, with_key) = with_key();
    let (_signed_in, signed_in) = serve_mail(&provider);
    let claude = ClaudeCode::new("pages");
    let texts = pages();
    let blocks = texts.iter().flat_map(|(path, text)| blocks(path, text));
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
            assert_eq!(claude.state_after(&line), expected, "{}", block.place);
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
#[ignore = "needs what sam build makes, npm's Claude Code and a provider of npm; run tests/all"]
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
    let caller = format!(r#"caller="token {} alice""#, provider.url);
    running.line_with(&caller, 10);
}
