//! Taking secrets out of what is recorded.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    Protocol, Secret,
    secrets::redaction::{Redaction, Redactor, SHORTEST_TO_RECORD},
};

/// Secret values, each with its placeholder.
pub(super) type Placeholders = Vec<(Secret, String)>;

pub(super) fn redaction_of(secrets: &Placeholders) -> Redaction {
    let mut redaction = Redaction::default();
    for (secret, placeholder) in secrets {
        let redactor = Redactor::new(secret.expose(), SHORTEST_TO_RECORD);
        redaction.add(&redactor, &Arc::from(&**placeholder));
    }
    redaction
}

/// A request's body, with placeholders where its secrets belong.
pub(super) enum RecordedBody {
    None,
    /// As it came, and what it says.
    Json(String, Value),
}

/// The body, and what its placeholders stand for. `None` where nothing can be told about the body.
pub(super) fn without_secrets(body: &[u8]) -> Option<(RecordedBody, Placeholders)> {
    if body.is_empty() {
        return Some((RecordedBody::None, Placeholders::new()));
    }
    let text = str::from_utf8(body).ok()?;
    let mut value: Value = serde_json::from_str(text).ok()?;
    let mut secrets = Placeholders::new();
    for (list, field) in Protocol::secrets() {
        if let Some(list) = value.pointer_mut(list) {
            take_out(list, field, &mut secrets);
        }
    }
    if secrets.is_empty() {
        value = serde_json::from_str(text).ok()?;
    }
    Some((RecordedBody::Json(text.to_owned(), value), secrets))
}

impl RecordedBody {
    /// What is recorded: the body as it came, unless there was a secret in it.
    pub(super) fn recorded(self, redaction: &Redaction) -> Option<String> {
        let Self::Json(came, mut value) = self else {
            return None;
        };
        replace_all(&mut value, redaction);
        let is_same = serde_json::from_str(&came).is_ok_and(|came: Value| came == value);
        Some(if is_same { came } else { value.to_string() })
    }
}

/// Takes the secrets out of a list of `{"id": …, FIELD: …}`; out of anything else, all there is.
fn take_out(value: &mut Value, field: &str, secrets: &mut Placeholders) {
    match value {
        Value::Array(items) => {
            for item in items {
                let id = item.get("id").and_then(Value::as_str).unwrap_or("?");
                let placeholder = format!("{}_OF_{id}", field.to_uppercase());
                match item.get_mut(field) {
                    Some(value) => take_all(value, &placeholder, secrets),
                    None => take_all(item, &placeholder, secrets),
                }
            }
        }
        other => take_all(other, "PLACEHOLDER", secrets),
    }
}

/// Takes every value out, whatever there is; what is no string stays no string, so that the
/// answer to it stays the same.
fn take_all(value: &mut Value, placeholder: &str, secrets: &mut Placeholders) {
    match value {
        Value::String(text) => {
            secrets.push((std::mem::take(text).into(), placeholder.to_owned()));
            placeholder.clone_into(text);
        }
        Value::Number(number) => {
            let text = number.to_string();
            if text.len() >= SHORTEST_TO_RECORD {
                secrets.push((text.into(), placeholder.to_owned()));
            }
            *number = 0.into();
        }
        Value::Array(items) => {
            for item in items {
                take_all(item, placeholder, secrets);
            }
        }
        Value::Object(fields) => {
            for (_, field) in fields {
                take_all(field, placeholder, secrets);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Replaces secrets in all that a value says, the names of fields included.
pub(super) fn replace_all(value: &mut Value, redaction: &Redaction) {
    match value {
        Value::String(text) => replace(text, redaction),
        Value::Number(number) => {
            if redaction.redacted(&number.to_string()).is_some() {
                *number = 0.into();
            }
        }
        Value::Array(items) => {
            for item in &mut *items {
                replace_all(item, redaction);
            }
            // Bytes are written as numbers.
            if items.iter().all(Value::is_number)
                && let Some(redacted) = redaction.redacted(&value.to_string())
            {
                *value = redacted.into();
            }
        }
        Value::Object(fields) => {
            let replaced = |(mut name, mut field)| {
                replace(&mut name, redaction);
                replace_all(&mut field, redaction);
                (name, field)
            };
            let fields_now: Map<_, _> = std::mem::take(fields).into_iter().map(replaced).collect();
            *fields = fields_now;
        }
        Value::Null | Value::Bool(_) => {}
    }
}

pub(super) fn replace(text: &mut String, redaction: &Redaction) {
    if let Some(redacted) = redaction.redacted(text) {
        *text = redacted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recorded(body: &Value) -> (Value, Placeholders) {
        let (body, secrets) = without_secrets(body.to_string().as_bytes()).unwrap();
        let text = body.recorded(&redaction_of(&secrets)).unwrap();
        (serde_json::from_str(&text).unwrap(), secrets)
    }

    #[test]
    fn only_secrets_are_replaced_and_nothing_is_added() {
        let body = json!({"tool_id": "A.B", "input": {"note": "my marked key"},
                          "context": {"secrets": [{"id": "K", "value": "marked"}]}});
        let (recorded, _) = recorded(&body);
        let expected = json!({"tool_id": "A.B", "input": {"note": "my VALUE_OF_K key"},
                              "context": {"secrets": [{"id": "K", "value": "VALUE_OF_K"}]}});
        assert_eq!(recorded, expected);
    }

    #[test]
    fn a_context_that_is_none_is_recorded_as_it_is() {
        for context in [
            json!(5),
            json!([]),
            json!("x"),
            json!({"secrets": 7}),
            json!(null),
        ] {
            let body =
                json!({"tool_id": "A.B", "context": context, "request": {"context": context}});
            assert_eq!(recorded(&body).0, body);
        }
    }

    #[test]
    fn secrets_of_any_form_are_found_in_the_answer() {
        let key = "-----BEGIN\n\"marked\\\"\n";
        let secrets =
            json!([{"id": "PEM", "value": key}, {"id": "EMPTY", "value": ""}, {"value": 7}]);
        let (_, secrets) = recorded(&json!({"request": {"context": {"secrets": secrets}}}));
        let mut answer = json!({"error": {"message": format!("bad key {key}!")}});
        replace_all(&mut answer, &redaction_of(&secrets));
        assert_eq!(answer["error"]["message"], "bad key VALUE_OF_PEM!");
    }

    #[test]
    fn secrets_in_the_wrong_place_are_secrets_too() {
        for context in [
            json!({"secrets": {"K": "marked"}}),
            json!({"secrets": ["marked"]}),
            json!({"secrets": "marked"}),
            json!({"secrets": [{"name": "K", "secret": "marked"}]}),
            json!({"authorization": [{"id": "google", "token": {"access_token": "marked"}}]}),
        ] {
            let mut beside = context.clone();
            beside["tool_id"] = json!("A.B");
            for body in [json!({"tool_id": "A.B", "context": context}), beside] {
                let (recorded, _) = recorded(&body);
                assert!(!recorded.to_string().contains("marked"), "{recorded}");
                assert_eq!(recorded["tool_id"], "A.B");
            }
        }
    }

    #[test]
    fn names_numbers_and_lists_of_numbers_are_held_to_the_secrets_too() {
        let bytes: Vec<_> = b"marked-value".to_vec();
        let body = json!({
            "tool_id": "A.B",
            "call_id": "of marked-value",
            "input": {"x-marked-value": 1, "bytes": bytes, "pin": 123_456, "page": 12, "list": [1, 2]},
            "context": {"secrets": [{"id": "K", "value": "marked-value"}, {"id": "PIN", "value": 123_456}]},
        });
        let (recorded, _) = recorded(&body);
        let expected = json!({
            "tool_id": "A.B",
            "call_id": "of VALUE_OF_K",
            "input": {"x-VALUE_OF_K": 1, "bytes": "[VALUE_OF_K]", "pin": 0, "page": 12, "list": [1, 2]},
            "context": {"secrets": [{"id": "K", "value": "VALUE_OF_K"}, {"id": "PIN", "value": 0}]},
        });
        assert_eq!(recorded, expected);
    }

    #[test]
    fn a_body_without_secrets_is_recorded_as_it_came() {
        let text = "{\"tool_id\": \"A.B\",\n  \"input\": {\"amount\": 1.50}}";
        let (body, secrets) = without_secrets(text.as_bytes()).unwrap();
        assert_eq!(
            body.recorded(&redaction_of(&secrets)).as_deref(),
            Some(text)
        );
    }

    #[test]
    fn short_secrets_do_not_wreck_the_rest() {
        let body = json!({"tool_id": "Trips.Plan", "input": {"a": "a plan"},
                          "context": {"secrets": [{"id": "K", "value": "a"}]}});
        let (recorded, _) = recorded(&body);
        assert_eq!(recorded["tool_id"], "Trips.Plan");
        assert_eq!(recorded["input"]["a"], "a plan");
        assert_eq!(recorded["context"]["secrets"][0]["value"], "VALUE_OF_K");
    }
}
