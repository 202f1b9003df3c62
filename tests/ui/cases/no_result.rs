use lambda_tools::Tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Input {}

fn tool(_: Input) -> String {
    String::new()
}

fn main() {
    Tool::new("T.T@1.0.0", tool);
}
