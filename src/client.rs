//! Clients for MCP, OXP, Open Tool Calling and OpenTool servers.
//!
//! They require the Cargo feature `client` and are not compiled without it. All clients time out,
//! limit the size of responses, follow no redirects, and never print their credentials. The clients
//! for MCP ([`mcp`]) and OXP ([`oxp`]) share their calls, their outcomes and their retries.
//!
//! The page [`clients`](crate::clients) describes their limits and retries.
//!
//! ```no_run
//! # async fn run() -> Result<(), lambda_tools::client::ClientError> {
//! use lambda_tools::client::{ClientOptions, oxp::{CallRequest, OxpClient, CallOutcome}};
//! use serde_json::json;
//!
//! let options = ClientOptions::default().api_key("my-api-key");
//! let client = OxpClient::new("https://tools.example", options)?;
//! let call = CallRequest::new("Calculator.Add").input(json!({"a": 10, "b": 5}));
//! match client.call(&call).await?.outcome {
//!     CallOutcome::Value(value) => println!("{value}"),
//!     CallOutcome::ToolError(error) => println!("{}", error.message),
//!     other => println!("{other:?}"),
//! }
//! let sum: f64 = client.run(&call).await?;
//! # Ok(())
//! # }
//! ```

#[doc(inline)]
pub use lambda_tools_client::{
    AuthorizationChallenge, CallOutcome, CallReply, CallRequest, ClientError, ClientOptions,
    InputRequest, InputRequired, InputResponse, JwtSigner, MissingRequirements, ServerError,
    ToolError, mcp, opentool, oxp,
};
