//! Two doorbells.

use std::time::Duration;

use lambda_tools::{Failure, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

const DOORBELLS: [&str; 2] = ["doorbell42", "doorbell84"];

/// Returns the doorbell's tools.
#[must_use]
pub fn tools() -> Vec<Tool> {
    vec![Tool::new("Doorbell.Ring@0.1.0", ring)]
}

/// Rings a doorbell given a doorbell ID.
#[derive(Deserialize, JsonSchema)]
struct Ring {
    /// The ID of the doorbell to ring.
    doorbell_id: String,
}

async fn ring(input: Ring) -> Result<(), Failure> {
    let id = input.doorbell_id;
    if DOORBELLS.contains(&id.as_str()) {
        return Ok(());
    }
    Err(Failure::new("Doorbell ID not found")
        .developer_message(format!("The doorbell with ID '{id}' does not exist."))
        .prompt(format!("ids: {}", DOORBELLS.join(",")))
        .retry_after(Duration::from_millis(500)))
}
