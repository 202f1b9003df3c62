//! One tool as pmcp serves it: its stateless axum router behind `lambda_http`.

use std::sync::Arc;

use lambda_http::{Error, run};
use pmcp::{
    Server, ServerCapabilities,
    axum::{AllowedOrigins, RouterConfig, concurrent_router_with_config},
    server::streamable_http_server::StreamableHttpServerConfig,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number to add.
    a: f64,
    /// The second number to add.
    b: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let server = Server::builder()
        .name("calculator")
        .version("1.0.0")
        .capabilities(ServerCapabilities::tools_only())
        .tool_typed_sync_with_description(
            "Calculator_Add",
            "Adds two numbers together.",
            |Add { a, b }, _| Ok(json!({"result": a + b})),
        )
        .build()?;
    let config = RouterConfig {
        allowed_origins: Some(AllowedOrigins::any()),
        server_config: StreamableHttpServerConfig::stateless(),
        ..RouterConfig::default()
    };
    let service = concurrent_router_with_config(Arc::new(server), config);
    run(axum::Router::new().nest("/mcp", service)).await
}
