//! An agent's loop: lists tools, offers them to chat models, runs what a model asks for.
//!
//! `cargo run --example agent --features client -- http://127.0.0.1:9000`. No model is called: its
//! answers are recorded ones.

use std::collections::BTreeMap;

use lambda_tools::{
    ToolDefinition,
    client::oxp::{CallOutcome, CallRequest, OxpClient},
};
use semver::Version;
use serde_json::{Value, json};

/// What chat completions take as `tools` at `OpenAI`.
fn for_openai(tool: &ToolDefinition) -> Value {
    json!({"type": "function", "function": {"name": tool.name, "description": tool.description,
        "parameters": tool.input_schema}})
}

/// What messages take as `tools` at Anthropic.
fn for_anthropic(tool: &ToolDefinition) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
}

/// A model's wish: the name and the input of a tool, and the id that its result has to have.
fn wishes_of(answer: &Value) -> Vec<(String, Value, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let openai = answer["tool_calls"].as_array().into_iter().flatten();
    let openai = openai.map(|it| {
        let arguments = serde_json::from_str(it["function"]["arguments"].as_str().unwrap_or("{}"));
        (
            text(&it["function"]["name"]),
            arguments.unwrap_or_default(),
            text(&it["id"]),
        )
    });
    let anthropic = answer["content"].as_array().into_iter().flatten();
    let anthropic = anthropic.filter(|it| it["type"] == "tool_use");
    let anthropic = anthropic.map(|it| (text(&it["name"]), it["input"].clone(), text(&it["id"])));
    openai.chain(anthropic).collect()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1);
    let client = OxpClient::new(url.as_deref().unwrap_or("http://127.0.0.1:9000"))?;
    let mut tools = client.tools().await?;
    // Models call tools by name, which means the newest version.
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

    // What models answered to "What is 10 and 5? Then ring the bell.", the tools in hand.
    let answers: Value = serde_json::from_str(include_str!("answers.json"))?;
    for (model, answer) in answers.as_object().into_iter().flatten() {
        for (name, input, id) in wishes_of(answer) {
            // A wrong name is refused by the server, in words that a model can act on. The model's
            // id belongs to this conversation; a call's has to be unique everywhere.
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
