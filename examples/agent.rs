//! An agent's loop: lists tools for chat models and runs the calls that a model makes.
//!
//! `cargo run --example agent --features client -- http://127.0.0.1:9000`; a URL that ends with
//! `/mcp` is that of an MCP server. No model is called: the models' replies are recorded.

use lambda_tools::{
    ToolDefinition,
    client::{ClientError, ClientOptions, mcp::McpClient, oxp::OxpClient},
    models::{ModelApi, ModelTools},
};
use serde_json::Value;

/// A client of either protocol.
enum Client {
    Mcp(McpClient),
    Oxp(OxpClient),
}

impl Client {
    fn new(url: &str) -> Result<Self, ClientError> {
        let options = ClientOptions::default();
        Ok(if url.ends_with("/mcp") {
            Self::Mcp(McpClient::new(url, options)?)
        } else {
            Self::Oxp(OxpClient::new(url, options)?)
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

    async fn respond(&self, tools: &ModelTools, reply: &Value) -> Vec<Value> {
        match self {
            Self::Mcp(client) => client.respond(tools, reply).await,
            Self::Oxp(client) => client.respond(tools, reply).await,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1);
    let client = Client::new(url.as_deref().unwrap_or("http://127.0.0.1:9000"))?;
    let definitions = client.tools().await?;
    println!("{} tools", definitions.len());

    // The models' replies to "What is 10 and 5? Then ring the bell." and the listed tools.
    let replies: Value = serde_json::from_str(include_str!("messages.json"))?;
    for (name, api) in [
        ("OpenAI", ModelApi::OpenAi { strict: true }),
        ("Anthropic", ModelApi::Anthropic),
    ] {
        let tools = ModelTools::new(api, definitions.clone());
        for tool in tools.list() {
            println!("{name} gets {tool}");
        }
        // A program sends the conversation and `tools.list()` to the model, appends its reply and
        // these messages, and repeats this until there are none.
        for message in client.respond(&tools, &replies[name]).await {
            println!("{name} gets {message}");
        }
    }
    Ok(())
}
