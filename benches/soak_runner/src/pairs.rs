//! The recorded events, each with the response that it must get.

use std::{error::Error, fs, path::Path, sync::Arc};

use serde_json::Value;
use test_support::repository;

use crate::function::{Answer, Function};

/// The folders whose server is the toolbox with no other setting than a base path, and whose tools
/// call no other server.
const FOLDERS: [&str; 10] = [
    "calculator",
    "doorbell",
    "malformed",
    "mcp",
    "opentool",
    "paths",
    "sources",
    "system",
    "tools",
    "versions",
];
/// The id in a recorded response to a call without an id, for which the server makes one.
const GENERATED: &str = "00000000-0000-4000-8000-000000000000";

/// The toolbox, and the events that it gets in a random order.
pub(crate) struct Pairs {
    pub(crate) function: Function,
    /// The events and the expected responses.
    pairs: Vec<(Value, Value)>,
    random: fastrand::Rng,
}

impl Pairs {
    pub(crate) async fn start(program: &Path) -> Result<Self, Box<dyn Error>> {
        let mut pairs = Vec::new();
        for folder in FOLDERS {
            for file in fs::read_dir(repository("events").join(folder))? {
                let path = file?.path();
                if let Ok(expected) = fs::read_to_string(path.with_extension("expected.json")) {
                    let event = serde_json::from_str(&fs::read_to_string(&path)?)?;
                    pairs.push((event, serde_json::from_str(&expected)?));
                }
            }
        }
        let environment = [
            ("TOOLS_BASE_PATH", "/agents"),
            // The events share call ids.
            ("TOOLS_IDEMPOTENCY", "none"),
            ("TOOLS_SECRETS", "none"),
        ];
        Ok(Self {
            function: Function::start(program, &environment, Arc::default()).await,
            pairs,
            random: fastrand::Rng::with_seed(1),
        })
    }

    /// Sends one of the events.
    pub(crate) async fn next(&mut self) {
        let (event, expected) = &self.pairs[self.random.usize(..self.pairs.len())];
        let check = |answer: &Answer| mistake(expected, answer);
        self.function
            .ask("recorded event", event.clone(), check)
            .await;
    }
}

/// Returns the difference between an answer and the recorded response.
fn mistake(expected: &Value, answer: &Answer) -> Option<String> {
    if expected["status"] != answer.status {
        return Some(format!("not a {}", expected["status"]));
    }
    let body = serde_json::from_str(&answer.text).unwrap_or_else(|_| match &*answer.text {
        "" => Value::Null,
        text => text.into(),
    });
    let is_right = is_equal(&expected["body"], &body);
    (!is_right).then(|| format!("expected {}", expected["body"]))
}

/// Returns true if both are equal, apart from times and generated ids.
fn is_equal(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(all), Value::Object(others)) => {
            let is_in_both = |(name, value): (&String, &Value)| {
                let other = others.get(name);
                other.is_some_and(|it| is_time(name) || is_equal(value, it))
            };
            all.len() == others.len() && all.iter().all(is_in_both)
        }
        (Value::Array(all), Value::Array(others)) => {
            let mut both = all.iter().zip(others);
            all.len() == others.len() && both.all(|(one, other)| is_equal(one, other))
        }
        (Value::String(text), Value::String(other)) if text != other => {
            let object = |text: &str| serde_json::from_str::<Value>(text).ok();
            let is_equal_json = || Some(is_equal(&object(text)?, &object(other)?));
            text == GENERATED && other.len() == text.len() || is_equal_json().unwrap_or(false)
        }
        _ => expected == actual,
    }
}

fn is_time(name: &str) -> bool {
    ["duration", "timestamp"].contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_may_differ_in_times_and_generated_ids_alone() {
        let body = |id: &str, duration: f64, sum: u8| {
            let text = json!({"sum": sum, "timestamp": duration}).to_string();
            json!({"call_id": id, "duration": duration, "content": [{"text": text}]})
        };
        let expected = body(GENERATED, 0.0, 15);
        let id = "123e4567-e89b-12d3-a456-426614174000";
        assert!(is_equal(&expected, &body(id, 1.5, 15)));
        assert!(!is_equal(&expected, &body("a", 1.5, 15)));
        assert!(!is_equal(&expected, &body(id, 1.5, 16)));
        assert!(!is_equal(&body(id, 1.5, 15), &expected));
        assert!(!is_equal(&json!([1]), &json!([1, 2])));
        assert!(!is_equal(&json!({}), &json!({"duration": 1})));
    }
}
