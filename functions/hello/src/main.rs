//! The smallest function: one tool. Copy this folder to start your own.

use lambda_tools::{Failure, Tool, Toolkit, serve};
use schemars::JsonSchema;
use serde::Deserialize;

/// Says hello to somebody.
#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to say hello to.
    name: String,
}

async fn greet(input: Greet) -> Result<String, Failure> {
    Ok(format!("Hello, {}!", input.name))
}

#[tokio::main]
async fn main() -> Result<(), lambda_tools::Error> {
    serve(Toolkit::new([Tool::new("Hello.Greet@1.0.0", greet)])?).await
}
