//! Clients for OXP, Open Tool Calling and OpenTool servers.
//!
//! They require the Cargo feature `client` and are not compiled without it. All clients time out,
//! limit the size of responses, follow no redirects, and never print their credentials.
//!
//! The page [`clients`](crate::clients) describes their limits and retries, and shows how to call the
//! tools of MCP servers.
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
//! # Ok(())
//! # }
//! ```

#[doc(inline)]
pub use lambda_tools_client::{
    AuthorizationChallenge, CallOutcome, CallReply, CallRequest, ClientError, ClientOptions,
    InvalidInput, JwtSigner, MissingRequirements, ServerError, ToolError, opentool, oxp,
};
