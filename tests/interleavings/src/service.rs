//! The service that a tool waits for, which decides how its run ends.

use std::panic::resume_unwind;

use lambda_tools::{Context, Failure, Tool};
use serde_json::{Value, json};

use crate::network::Connection;

/// Returns the tool, which runs `act`.
pub(crate) fn tool<F>(
    is_at_most_once: bool,
    act: impl Fn(Value, Context) -> F + Clone + Send + Sync + 'static,
) -> Tool
where
    F: Future<Output = Result<Value, Failure>> + Send + 'static,
{
    let object = json!({"type": "object", "properties": {}});
    let tool = Tool::dynamic("Act.Do@1.0.0", "Acts.", object, json!({}), act);
    if is_at_most_once {
        tool.run_at_most_once()
    } else {
        tool
    }
}

/// Waits until the service has ended a run of the tool, and ends it in the same way.
pub(crate) async fn run(
    number: usize,
    process: &Connection,
    note: impl FnOnce(String),
) -> Result<Value, Failure> {
    let result = loop {
        if let Some(result) = process.request(format!("run {number}")).await {
            break result;
        }
    };
    note(result.clone());
    match &*result {
        "value" => Ok(json!(number)),
        "failure" => Err(Failure::new(number.to_string())),
        "retry" => Err(Failure::new(number.to_string()).retry()),
        // Without the message of a panic.
        _ => resume_unwind(Box::new(())),
    }
}

/// Returns the number of the run that sent a request.
pub(crate) fn number_of(request: &str) -> Option<usize> {
    let (_, number) = request.split_once(' ')?;
    number.parse().ok()
}

/// Returns the ways in which the service may treat a request.
pub(crate) fn treatments(request: &str) -> &'static [&'static str] {
    if request.starts_with("acted") {
        &["value"]
    } else {
        &["value", "failure", "retry", "panic", "acts"]
    }
}

/// Treats a request, whose effect `act` records. Returns the response; as an error, what the request
/// becomes if the response takes longer.
pub(crate) fn serve(
    request: &str,
    treatment: &str,
    act: impl FnOnce(usize),
) -> Result<String, String> {
    let number = number_of(request).unwrap();
    // A failure that may be retried says that nothing has happened.
    if treatment != "retry" && request.starts_with("run") {
        act(number);
    }
    match treatment {
        "acts" => Err(format!("acted {number}")),
        answer => Ok(answer.to_owned()),
    }
}
