use lambda_tools::{Failure, Tool};
use serde::Deserialize;

#[derive(Deserialize)]
struct Input {
    text: String,
}

async fn tool(input: Input) -> Result<String, Failure> {
    Ok(input.text)
}

fn main() {
    Tool::new("T.T@1.0.0", tool);
}
