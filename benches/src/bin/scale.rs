//! A function with as many tools as `TOOLS` sets, and with tools of large inputs and schemas.

use lambda_tools::{Failure, Server, Tool, Toolkit, run};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Adds two numbers together.
#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number to add.
    a: f64,
    /// The second number to add.
    b: f64,
}

async fn add(input: Add) -> Result<f64, Failure> {
    Ok(input.a + input.b)
}

/// Counts records.
#[derive(Deserialize, JsonSchema)]
struct Count {
    /// The records to count.
    records: Vec<Record>,
}

#[derive(Deserialize, JsonSchema)]
struct Record {
    /// A number.
    id: u64,
    /// A text.
    #[expect(dead_code, reason = "only decoded")]
    text: String,
}

async fn count(input: Count) -> Result<u64, Failure> {
    Ok(input.records.iter().map(|record| record.id).sum())
}

async fn properties(input: Value) -> Result<Value, Failure> {
    Ok(input.as_object().map_or(0, Map::len).into())
}

/// A tool with many parameters.
fn wide(parameters: usize) -> Tool {
    let about = json!({"type": "string", "description": "A parameter.", "maxLength": 100});
    let all: Map<_, _> = (0..parameters)
        .map(|i| (format!("p{i}"), about.clone()))
        .collect();
    let schema = json!({"type": "object", "properties": all, "additionalProperties": false});
    let id = format!("Wide.W{parameters}@1.0.0");
    Tool::dynamic(
        id,
        "Has many parameters.",
        schema,
        json!({"type": "integer"}),
        properties,
    )
}

/// A tool whose input is ten objects deep.
fn deep() -> Tool {
    let mut schema = json!({"type": "string", "description": "The innermost."});
    for _ in 0..10 {
        schema = json!({"type": "object", "description": "One of ten.", "properties": {"in": schema},
                        "required": ["in"], "additionalProperties": false});
    }
    Tool::dynamic(
        "Deep.D10@1.0.0",
        "Is deep.",
        schema,
        json!({"type": "integer"}),
        properties,
    )
}

fn main() -> Result<(), lambda_tools::Error> {
    let tools = std::env::var("TOOLS")
        .ok()
        .and_then(|tools| tools.parse().ok());
    let many = (1..tools.unwrap_or(1)).map(|i| Tool::new(format!("Scale.Add{i}@1.0.0"), add));
    let few = [
        Tool::new("Calculator.Add@1.0.0", add),
        Tool::new("Records.Count@1.0.0", count),
        wide(5),
        wide(500),
        deep(),
    ];
    // With `TOOLS=1` there is exactly one tool.
    let few = few.into_iter().take(if tools == Some(1) { 1 } else { 5 });
    let toolkit = Toolkit::new(few.chain(many).map(Tool::idempotent))?;
    // The largest input has 5 MB.
    run(Server::new(toolkit).max_request_size(6_000_000))
}
