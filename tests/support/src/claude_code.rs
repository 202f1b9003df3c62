//! Claude Code, an agent that needs no account for this: it connects, signs its user in, and calls
//! tools. The model is played; everything else is the published program, which comes from npm.

use std::{fs, process::Command};

use axum::{Router, body::Bytes, response::Response};
use serde_json::{Value, json};

use crate::{Served, answer, limited, marks::Scratch, programs::prepare_claude_code, stdout_of};

/// Claude Code with settings of its own.
pub struct ClaudeCode {
    /// Its home, and the folder in which its user types.
    pub home: Scratch,
}

impl ClaudeCode {
    /// Makes a home for the test with this name.
    pub fn new(test: &str) -> Self {
        let home = Scratch::new(&format!("claude-{test}"));
        fs::create_dir_all(&home.0).unwrap();
        Self { home }
    }

    /// Lets a shell run a command as a page prints it.
    pub fn shell(&self, mut command: Command, script: &str) -> Command {
        command.args(["-c", script]).current_dir(&self.home.0);
        self.prepare(&mut command);
        command
    }

    /// Sets the variables for the program, and no others.
    pub fn prepare(&self, command: &mut Command) {
        prepare_claude_code(command, &self.home.0);
    }

    /// Runs commands to their end; returns what they print.
    pub fn run(&self, script: &str) -> String {
        let mut command = self.shell(limited("sh"), script);
        let output = tokio::task::block_in_place(|| command.output());
        stdout_of(&output.unwrap())
    }

    /// Returns the line for the server that a command has added, and removes the server again.
    pub fn state_after(&self, add: &str) -> String {
        self.run(add);
        let listed = self.run("claude mcp list");
        self.run("claude mcp remove tools");
        let mut lines = listed.lines();
        let line = lines.find(|line| line.starts_with("tools: "));
        let line = line.unwrap_or_else(|| panic!("{add}: {listed}"));
        line.rsplit(" - ").next().unwrap().to_owned()
    }

    /// Lets a model that asks for this tool answer; returns what its user sees.
    pub async fn ask(&self, tool: &str, input: Value) -> String {
        let model = played_model(format!("mcp__tools__{tool}"), input).await;
        let script = format!(
            "ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY=any \
             claude -p 'Use the tool.' --allowedTools mcp__tools__{tool} </dev/null",
            model.url
        );
        self.run(&script)
    }
}

/// Serves Anthropic's Messages API, with a model that asks for one tool and then quotes its result.
pub async fn played_model(tool: String, input: Value) -> Served {
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
    let mut blocks = messages.iter().flat_map(|it| list(&it["content"]));
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
    let headers = [("content-type", "text/event-stream")];
    answer(200, &headers, events.concat())
}
