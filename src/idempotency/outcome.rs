//! An outcome as bytes, to be replayed byte for byte.
//!
//! The value is stored as the text that was sent: parsing it and writing it again could change the
//! last digit of a float.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    Failure,
    text::whole_milliseconds,
    tool::{failure::Question, output::Output, reason::Reason},
};

/// The format of an outcome. `V` is the value as it is written or read: `&Output` or `Box<RawValue>`.
#[derive(Deserialize, Serialize)]
struct StoredOutcome<V> {
    /// The tool's duration in microseconds, the precision of durations in responses.
    us: u64,
    result: StoredResult<V>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum StoredResult<V> {
    Value(V),
    Failure(Box<StoredFailure>),
}

/// A failure. Only that of a task may be retried, or has a question.
#[derive(Deserialize, Serialize)]
struct StoredFailure {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    developer_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// The reason for logs, unless the tool returned the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    can_retry: bool,
    /// The time to wait before a retry, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<Question>,
}

/// A tool's duration and its result.
pub(super) type TimedResult = (Duration, Result<Output, Failure>);

pub(super) fn encode(duration: Duration, result: &Result<Output, Failure>) -> Vec<u8> {
    let result = match result {
        Ok(output) => StoredResult::Value(output),
        Err(failure) => StoredResult::Failure(Box::new(to_stored(failure))),
    };
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    serde_json::to_vec(&StoredOutcome { us, result }).expect("JSON can be written as JSON")
}

/// Decodes an outcome. Returns `None` if the bytes are not one.
pub(super) fn decode(bytes: &[u8]) -> Option<TimedResult> {
    let stored: StoredOutcome<Box<RawValue>> = serde_json::from_slice(bytes).ok()?;
    let result = match stored.result {
        StoredResult::Value(text) => Ok(Output::Json(text)),
        StoredResult::Failure(failure) => Err(from_stored(*failure)),
    };
    Some((Duration::from_micros(stored.us), result))
}

fn to_stored(failure: &Failure) -> StoredFailure {
    let parts = failure.parts();
    StoredFailure {
        message: parts.message.clone(),
        developer_message: parts.developer_message.clone(),
        prompt: parts.additional_prompt_content.clone(),
        reason: (parts.reason != Reason::Failed).then(|| parts.reason.as_str().to_owned()),
        can_retry: parts.can_retry,
        retry_after: parts.retry_after.map(whole_milliseconds),
        question: parts.question.clone(),
    }
}

fn from_stored(stored: StoredFailure) -> Failure {
    let reason = stored.reason.as_deref().and_then(Reason::of);
    let mut failure = Failure::internal(reason.unwrap_or(Reason::Failed), &stored.message);
    if let Some(text) = stored.developer_message {
        failure = failure.developer_message(text);
    }
    if let Some(text) = stored.prompt {
        failure = failure.prompt(text);
    }
    if stored.can_retry {
        failure = failure.retry();
    }
    if let Some(ms) = stored.retry_after {
        failure = failure.retry_after(Duration::from_millis(ms));
    }
    if let Some(question) = stored.question {
        failure = failure.with_question(question);
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn replayed(value: &Value) -> String {
        let result = Ok(Output::Value(value.clone()));
        let (duration, result) = decode(&encode(Duration::from_micros(1500), &result)).unwrap();
        assert_eq!(duration, Duration::from_micros(1500));
        match result.unwrap() {
            Output::Json(text) => text.get().to_owned(),
            Output::Value(_) => unreachable!(),
        }
    }

    #[test]
    fn every_value_is_replayed_as_the_same_text() {
        let values = json!([
            null, 0, false, "", [], {}, 0.1 + 0.2, 5e-324, u64::MAX,
            {"b": [1, {"a": null}], "a": "é\u{0}\""}, "x".repeat(100_000),
        ]);
        for value in values.as_array().unwrap() {
            assert_eq!(replayed(value), value.to_string());
        }
    }

    #[test]
    fn failures_are_replayed_in_full() {
        for reason in [Reason::Failed, Reason::TimedOut] {
            let failure = || {
                Failure::internal(reason, "m")
                    .developer_message("d")
                    .prompt("p")
            };
            let bytes = encode(Duration::ZERO, &Err(failure()));
            let (_, result) = decode(&bytes).unwrap();
            let replayed = result.err().unwrap();
            assert_eq!(format!("{replayed:?}"), format!("{:?}", failure()));
            assert_eq!(replayed.parts().reason, reason);
        }
    }

    #[test]
    fn damaged_bytes_are_not_decoded() {
        for bytes in [&b""[..], b"\0", b"{", b"{\"us\":1}"] {
            assert!(decode(bytes).is_none(), "{bytes:?}");
        }
    }
}
