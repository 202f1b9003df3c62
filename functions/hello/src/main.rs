//! The smallest function: one tool. Copy this folder to start your own.

use lambda_tools::{Failure, Tool, Toolkit, run};
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

fn main() -> Result<(), lambda_tools::Error> {
    run(Toolkit::new([Tool::new("Hello.Greet@1.0.0", greet)])?)
}
