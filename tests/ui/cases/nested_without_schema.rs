use lambda_tools::{Failure, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize)]
struct Address {
    street: String,
}

#[derive(Deserialize, JsonSchema)]
struct Input {
    address: Address,
}

async fn tool(input: Input) -> Result<String, Failure> {
    Ok(input.address.street)
}

fn main() {
    Tool::new("T.T@1.0.0", tool);
}
