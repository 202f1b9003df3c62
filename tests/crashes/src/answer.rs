//! Reads the responses of the function.

use serde_json::Value;

use crate::history::{Answer, Outcome};

impl Answer {
    /// Reads the response to an event of an HTTP API.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let response: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let body = response["body"].as_str().unwrap_or_default().to_owned();
        let json: Value = serde_json::from_str(&body).unwrap_or_default();
        Self {
            is_replay: response["headers"]["idempotent-replay"] == "true",
            outcome: outcome(response["statusCode"].as_u64(), &json),
            body,
        }
    }
}

fn outcome(status: Option<u64>, body: &Value) -> Outcome {
    let message = |value: &Value| value["message"].as_str().unwrap_or_default().to_owned();
    match (status, body["success"].as_bool()) {
        (Some(200), Some(true)) => {
            let value = &body["value"];
            let item = value["item"].as_u64().and_then(|item| item.try_into().ok());
            match (value["serial"].as_u64(), item) {
                (Some(serial), Some(item)) => Outcome::Value(serial, item),
                _ => Outcome::Unknown,
            }
        }
        (Some(200), Some(false)) => {
            let error = &body["error"];
            let may_retry = error["can_retry"] == true;
            Outcome::Failure(message(error), may_retry)
        }
        (Some(400), None) => match &*message(body) {
            "This call_id belongs to another call" => Outcome::IdReused,
            "The tool server is temporarily unavailable" => Outcome::Unprotected,
            _ => Outcome::Unknown,
        },
        _ => Outcome::Unknown,
    }
}
