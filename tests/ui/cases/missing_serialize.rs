use lambda_tools::{Failure, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Input {}

struct Output {
    text: String,
}

async fn tool(_: Input) -> Result<Output, Failure> {
    Ok(Output { text: String::new() })
}

fn main() {
    Tool::new("T.T@1.0.0", tool);
}
