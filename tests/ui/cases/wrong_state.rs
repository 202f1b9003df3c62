use lambda_tools::{Failure, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Input {}

async fn tool(state: String, _: Input) -> Result<String, Failure> {
    Ok(state)
}

fn main() {
    Tool::with_state("T.T@1.0.0", &7_u8, tool);
}
