//! A server with the tools that MCP's conformance suite calls, as far as a server of tools has them.

use lambda_tools::{Error, Failure, Server, ServerInfo, Tool, Toolkit, serve};
use schemars::JsonSchema;
use serde::Deserialize;

/// Needs no parameters.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn text(_: Nothing) -> Result<String, Failure> {
    Ok("This is a simple text response for testing.".into())
}

async fn fail(_: Nothing) -> Result<(), Failure> {
    Err(Failure::new(
        "This tool intentionally returns an error for testing",
    ))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let text = |id, name: &str| Tool::new(id, text).name(name).idempotent();
    let tools = [
        text("Test.SimpleText@1.0.0", "test_simple_text"),
        text(
            "Test.StreamingElicitation@1.0.0",
            "test_streaming_elicitation",
        ),
        text("Test.Logging@1.0.0", "test_logging_tool"),
        Tool::new("Test.ErrorHandling@1.0.0", fail).name("test_error_handling"),
    ];
    let info = ServerInfo::new("Conformance", env!("CARGO_PKG_VERSION"));
    serve(Server::new(Toolkit::new(tools)?).info(info)).await
}
