//! One tool as MCP's official Rust SDK serves it: its stateless HTTP service behind `lambda_http`.

use std::sync::Arc;

use lambda_http::{Error, run};
use rmcp::{
    Json, ServerHandler,
    handler::server::wrapper::Parameters,
    model::{ServerCapabilities, ServerConfig},
    tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The host of the benchmark's events.
const HOST: &str = "r3pmxmplak.execute-api.us-east-2.amazonaws.com";

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number to add.
    a: f64,
    /// The second number to add.
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// The sum of the two numbers.
    result: f64,
}

struct Calculator;

#[tool_router]
impl Calculator {
    #[tool(name = "Calculator_Add", description = "Adds two numbers together.")]
    fn add(Parameters(Add { a, b }): Parameters<Add>) -> Json<Sum> {
        Json(Sum { result: a + b })
    }
}

#[tool_handler]
impl ServerHandler for Calculator {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts([HOST])
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let sessions = Arc::new(NeverSessionManager::default());
    run(StreamableHttpService::new(
        || Ok(Calculator),
        sessions,
        config,
    ))
    .await
}
