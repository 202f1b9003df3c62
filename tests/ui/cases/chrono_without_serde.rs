use chrono::{DateTime, Utc};
use lambda_tools::{Failure, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Input {
    at: DateTime<Utc>,
}

async fn tool(input: Input) -> Result<String, Failure> {
    Ok(input.at.to_string())
}

fn main() {
    Tool::new("T.T@1.0.0", tool);
}
