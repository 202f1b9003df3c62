//! Lists the tools of an MCP server, and calls one.

use rmcp::{ServiceExt, model::CallToolRequestParams, object, transport};
use transport::streamable_http_client::StreamableHttpClientTransportConfig;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = StreamableHttpClientTransportConfig::with_uri(std::env::var("MCP_URL")?);
    let config = config.auth_header(std::env::var("MCP_KEY")?);
    let transport = transport::StreamableHttpClientTransport::from_config(config);
    let client = ().serve(transport).await?;
    for tool in client.list_all_tools().await? {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    let call = CallToolRequestParams::new("Calculator_Add");
    let call = call.with_arguments(object!({"a": 10, "b": 5}));
    let result = client.call_tool(call).await?;
    println!("{}", result.structured_content.unwrap_or_default());
    Ok(())
}
