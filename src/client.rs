//! Clients: calling the tools of any OXP, Open Tool Calling or OpenTool server.
//!
//! With the cargo feature `client`; nothing of it is in a function that does not ask for it. Both
//! clients time out, limit what they read, follow no redirect, and never print their credentials.
//!
//! ```no_run
//! # async fn run() -> Result<(), lambda_tools::client::ClientError> {
//! use lambda_tools::client::oxp::{CallRequest, OxpClient, CallOutcome};
//! use serde_json::json;
//!
//! let client = OxpClient::new("https://tools.example")?.api_key("key-of-mine");
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

mod credentials;
mod error;
mod http;
pub mod opentool;
pub mod oxp;
mod retry;

pub use credentials::JwtSigner;
pub use error::ClientError;
