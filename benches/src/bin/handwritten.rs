//! The same tool written by hand with `lambda_http`, serde and jsonschema.

use std::{sync::LazyLock, time::Instant};

use jsonschema::Validator;
use lambda_http::{Body, Error, Request, Response, run, service_fn};
use serde::Deserialize;
use serde_json::{Value, json};

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let number = |about: &str| json!({"type": "number", "description": about});
    let schema = json!({
        "type": "object",
        "properties": {"a": number("The first number."), "b": number("The second number.")},
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    jsonschema::draft7::new(&schema).expect("a schema")
});

#[derive(Deserialize)]
struct Call {
    tool_id: String,
    call_id: String,
    input: Value,
}

#[derive(Deserialize)]
struct Add {
    a: f64,
    b: f64,
}

async fn answer(request: Request) -> Result<Response<Body>, Error> {
    let begun = Instant::now();
    let call: Call = serde_json::from_slice(request.body())?;
    let (status, body) = if call.tool_id != "Calculator.Add@1.0.0" {
        (400, json!({"message": "the tool was not found"}))
    } else if let Err(error) = SCHEMA.validate(&call.input) {
        (422, json!({"message": error.to_string()}))
    } else {
        let Add { a, b } = serde_json::from_value(call.input)?;
        let duration = begun.elapsed().as_secs_f64() * 1000.0;
        let answer = json!({
            "call_id": call.call_id, "success": true, "duration": duration, "value": a + b,
        });
        (200, answer)
    };
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .header("oxp-version", "1.0");
    Ok(response.body(body.to_string().into())?)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    run(service_fn(answer)).await
}
