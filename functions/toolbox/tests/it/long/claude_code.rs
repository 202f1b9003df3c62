//! Claude Code, an agent that needs no account for this: it connects, signs its user in, and calls
//! tools. The model is played; everything else is the published program.
//!
//! It comes from npm.

use std::{fs, process::Command};

use axum::{Router, body::Bytes, response::Response};
use serde_json::{Value, json};
use test_support::{
    Served, answer,
    documents::{ADDRESS, DEPLOYED, blocks, is_typed, pages},
    marks::Scratch,
    openid::{Act, Browser, OpenId},
    programs::prepare_claude_code,
};

use crate::{
    clients::{limited, stdout_of},
    documents::KEY,
    sign_in::serve_mail,
    support::{Running, installed, toolbox},
};

/// Claude Code with settings of its own.
pub(crate) struct ClaudeCode {
    pub(crate) home: Scratch,
}

impl ClaudeCode {
    pub(crate) fn new(test: &str) -> Self {
        let home = Scratch::new(&format!("claude-{test}"));
        fs::create_dir_all(&home.0).unwrap();
        Self { home }
    }

    /// Lets a shell run a command as a page prints it.
    fn shell(&self, mut command: Command, script: &str) -> Command {
        command.args(["-c", script]).current_dir(&self.home.0);
        self.prepare(&mut command);
        command
    }

    /// Sets the variables for the program, and no others.
    pub(crate) fn prepare(&self, command: &mut Command) {
        prepare_claude_code(command, &self.home.0);
    }

    fn run(&self, script: &str) -> String {
        let mut command = self.shell(limited("sh"), script);
        let output = tokio::task::block_in_place(|| command.output());
        stdout_of(&output.unwrap())
    }

    /// Returns the line for the server that a command has added, and removes the server again.
    pub(crate) fn state_after(&self, add: &str) -> String {
        self.run(add);
        let listed = self.run("claude mcp list");
        self.run("claude mcp remove tools");
        let mut lines = listed.lines();
        let line = lines.find(|line| line.starts_with("tools: "));
        let line = line.unwrap_or_else(|| panic!("{add}: {listed}"));
        line.rsplit(" - ").next().unwrap().to_owned()
    }

    /// Lets a model that asks for this tool without arguments answer; returns what its user sees.
    async fn ask(&self, tool: &str) -> String {
        let model = played_model(format!("mcp__tools__{tool}"), json!({})).await;
        let script = format!(
            "ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY=any \
             claude -p 'Use the tool.' --allowedTools mcp__tools__{tool} </dev/null",
            model.url
        );
        self.run(&script)
    }
}

/// Serves Anthropic's Messages API, with a model that asks for one tool and then quotes its result.
pub(crate) async fn played_model(tool: String, input: Value) -> Served {
    let reply = async move |body: Bytes| {
        let request = serde_json::from_slice(&body).unwrap_or_default();
        stream(&next_block(&request, &tool, &input))
    };
    Served::start(Router::new().fallback(reply)).await
}

/// Returns the content with which the model continues a conversation.
fn next_block(request: &Value, tool: &str, input: &Value) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let messages = list(&request["messages"]);
    let mut blocks = messages
        .iter()
        .flat_map(|message| list(&message["content"]));
    let result = blocks.find(|block| block["tool_use_id"] == "toolu_call");
    let mut tools = list(&request["tools"]).into_iter();
    match result {
        Some(result) => {
            let content = &result["content"];
            let content = content.as_str().map_or(content.to_string(), str::to_owned);
            json!({"type": "text", "text": format!("The tool said: {content}")})
        }
        None if tools.any(|it| it["name"] == tool) => {
            json!({"type": "tool_use", "id": "toolu_call", "name": tool, "input": input})
        }
        // The definitions of tools are loaded when the model searches for them.
        None => {
            let query = json!({"query": format!("select:{tool}")});
            json!({"type": "tool_use", "id": "toolu_search", "name": "ToolSearch", "input": query})
        }
    }
}

/// Returns the events of a response with this block.
fn stream(block: &Value) -> Response {
    let is_text = block["type"] == "text";
    let (start, delta, reason) = if is_text {
        let delta = json!({"type": "text_delta", "text": block["text"]});
        (json!({"type": "text", "text": ""}), delta, "end_turn")
    } else {
        let mut start = block.clone();
        let input = start["input"].take();
        start["input"] = json!({});
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        (start, delta, "tool_use")
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "played", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let stop = json!({"stop_reason": reason, "stop_sequence": null});
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": stop, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let events = events.map(|event| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    });
    answer(
        200,
        &[("content-type", "text/event-stream")],
        events.concat(),
    )
}

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
    let said = claude.ask("Mail_Whose").await;
    assert_eq!(said.trim(), r#"The tool said: {"result":"alice"}"#);
    let caller = format!(r#"caller="token {} alice""#, provider.url);
    let logged = running.line_with(&caller, 10);
    let dialect = r#"dialect="mcp-2026-07-28""#;
    assert!(logged.contains(dialect), "{logged}");
}
