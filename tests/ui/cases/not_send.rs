use std::rc::Rc;

use lambda_tools::{Failure, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Input {}

async fn wait() {}

async fn tool(_: Input) -> Result<String, Failure> {
    let text = Rc::new(String::new());
    wait().await;
    Ok(text.to_string())
}

fn main() {
    Tool::new("T.T@1.0.0", tool);
}
