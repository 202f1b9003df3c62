//! An agent's loop: lists tools, offers them to chat models and makes the calls a model requests.
//!
//! `cargo run --example agent --features client -- http://127.0.0.1:9000`; a URL that ends with
//! `/mcp` is that of an MCP server. No model is called: the models' messages are recorded.

use std::collections::BTreeMap;

use lambda_tools::{
    ToolDefinition,
    client::{CallOutcome, CallReply, CallRequest, ClientError, mcp::McpClient, oxp::OxpClient},
};
use semver::Version;
use serde_json::{Value, json};

/// A client of either protocol.
enum Client {
    Mcp(McpClient),
    Oxp(OxpClient),
}

impl Client {
    fn new(url: &str) -> Result<Self, ClientError> {
        Ok(if url.ends_with("/mcp") {
            Self::Mcp(McpClient::new(url)?)
        } else {
            Self::Oxp(OxpClient::new(url)?)
        })
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ClientError> {
        match self {
            Self::Mcp(client) => {
                let tools = client.tools().await?.into_iter();
                Ok(tools.map(ToolDefinition::from).collect())
            }
            Self::Oxp(client) => client.tools().await,
        }
    }

    async fn call(&self, call: &CallRequest) -> Result<CallReply, ClientError> {
        match self {
            Self::Mcp(client) => client.call(call).await,
            Self::Oxp(client) => client.call(call).await,
        }
    }
}

/// An item of `tools` in `OpenAI`'s Chat Completions API.
fn for_openai(tool: &ToolDefinition) -> Value {
    json!({"type": "function", "function": {"name": tool.name, "description": tool.description,
        "parameters": tool.input_schema}})
}

/// An item of `tools` in Anthropic's Messages API.
fn for_anthropic(tool: &ToolDefinition) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
}

/// The calls that a model requests: the tool's name, its input, and the id for the result.
fn requested_calls(message: &Value) -> Vec<(String, Value, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let openai = message["tool_calls"].as_array().into_iter().flatten();
    let openai = openai.map(|it| {
        let arguments = serde_json::from_str(it["function"]["arguments"].as_str().unwrap_or("{}"));
        (
            text(&it["function"]["name"]),
            arguments.unwrap_or_default(),
            text(&it["id"]),
        )
    });
    let anthropic = message["content"].as_array().into_iter().flatten();
    let anthropic = anthropic.filter(|it| it["type"] == "tool_use");
    let anthropic = anthropic.map(|it| (text(&it["name"]), it["input"].clone(), text(&it["id"])));
    openai.chain(anthropic).collect()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1);
    let client = Client::new(url.as_deref().unwrap_or("http://127.0.0.1:9000"))?;
    let mut tools = client.tools().await?;
    // Models call a tool by its name, which selects the newest version.
    tools.sort_by_cached_key(|tool| Version::parse(&tool.version).ok());
    let newest = tools.iter().map(|tool| (tool.name.as_str(), tool));
    let newest: BTreeMap<_, _> = newest.collect();
    println!(
        "{} tools, {} of them the newest versions",
        tools.len(),
        newest.len()
    );
    for tool in newest.values() {
        println!("{}\n{}", for_openai(tool), for_anthropic(tool));
    }

    // The models' messages after "What is 10 and 5? Then ring the bell." and the offered tools.
    let messages: Value = serde_json::from_str(include_str!("messages.json"))?;
    for (model, message) in messages.as_object().into_iter().flatten() {
        for (name, input, id) in requested_calls(message) {
            // The server rejects an unknown name with a message that a model can act on. The
            // model's id is unique only in this conversation; a call's must be unique everywhere.
            let tool_id = newest.get(name.as_str()).map_or(&name, |tool| &tool.id);
            let call = CallRequest::new(tool_id).input(input.clone());
            let result = match client.call(&call).await?.outcome {
                CallOutcome::Value(value) => value.to_string(),
                other => other.message(),
            };
            println!("{model}: {name}({input}) = {result} (for {id})");
        }
    }
    Ok(())
}
