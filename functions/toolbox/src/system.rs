//! The system's time.

use lambda_tools::{Context, Failure, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Returns the system's tools.
#[must_use]
pub fn tools() -> Vec<Tool> {
    vec![Tool::new("System.GetTimestamp@1.0.0", get_timestamp).idempotent()]
}

/// Retrieves the current system timestamp.
#[derive(Deserialize, JsonSchema)]
struct GetTimestamp {}

#[derive(JsonSchema, Serialize)]
struct Timestamp {
    /// The current system timestamp.
    #[schemars(extend("format" = "date-time"))]
    timestamp: String,
}

async fn get_timestamp(_: GetTimestamp, cx: Context) -> Result<Timestamp, Failure> {
    let timestamp = humantime::format_rfc3339(cx.now()).to_string();
    Ok(Timestamp { timestamp })
}
