use lambda_tools::Tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Input {}

async fn tool(_: Input) -> Result<String, std::io::Error> {
    std::fs::read_to_string("file")
}

fn main() {
    Tool::new("T.T@1.0.0", tool);
}
