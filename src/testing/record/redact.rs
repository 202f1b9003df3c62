//! Removal of secrets from recordings.

use serde_json::{Map, Value};

use crate::{
    Protocol, Secret,
    secrets::redaction::{Redaction, SHORTEST_TO_RECORD},
};

/// Secret values, each with its placeholder.
pub(super) type Placeholders = Vec<(Secret, String)>;

pub(super) fn redaction_of(secrets: &Placeholders) -> Redaction {
    let secrets = secrets.iter();
    let secrets = secrets.map(|(secret, placeholder)| (secret.expose(), &**placeholder));
    Redaction::with_placeholders(secrets, SHORTEST_TO_RECORD)
}

/// A request's body, with placeholders in the places for secrets.
pub(super) enum RecordedBody {
    None,
    /// The original text, and the value with placeholders.
    Json(String, Value),
}

/// Returns the body, and the secrets that its placeholders replace. `None` if the body is not JSON.
pub(super) fn without_secrets(body: &[u8]) -> Option<(RecordedBody, Placeholders)> {
    if body.is_empty() {
        return Some((RecordedBody::None, Placeholders::new()));
    }
    let text = str::from_utf8(body).ok()?;
    let mut value: Value = serde_json::from_str(text).ok()?;
    let mut secrets = Placeholders::new();
    for (list, field) in Protocol::secrets() {
        if let Some(list) = value.pointer_mut(list) {
            replace_in_list(list, field, &mut secrets);
        }
    }
    if secrets.is_empty() {
        value = serde_json::from_str(text).ok()?;
    }
    Some((RecordedBody::Json(text.to_owned(), value), secrets))
}

impl RecordedBody {
    /// Returns the body to record: the original text, unless it contained a secret.
    pub(super) fn recorded(self, redaction: &Redaction) -> Option<String> {
        let Self::Json(original, mut value) = self else {
            return None;
        };
        replace_all(&mut value, redaction);
        let is_same = serde_json::from_str(&original).is_ok_and(|it: Value| it == value);
        Some(if is_same { original } else { value.to_string() })
    }
}

/// Returns the placeholder of a secret's value in the store.
pub(super) fn stored_placeholder(id: &str) -> String {
    format!("VALUE_OF_{id}")
}

/// Returns the placeholder of a secret or a token in a call.
fn placeholder_of(item: &Value, field: &str) -> String {
    let id = item.get("id").and_then(Value::as_str).unwrap_or("?");
    format!("{}_OF_{id}", field.to_uppercase())
}

/// Collects the secrets of a list of `{"id": …, FIELD: …}` and puts placeholders in their place. In
/// anything else, every value counts as a secret.
fn replace_in_list(value: &mut Value, field: &str, secrets: &mut Placeholders) {
    match value {
        Value::Array(items) => {
            for item in items {
                let placeholder = placeholder_of(item, field);
                match item.get_mut(field) {
                    Some(value) => replace_values(value, &placeholder, secrets),
                    None => replace_values(item, &placeholder, secrets),
                }
            }
        }
        other => replace_values(other, "PLACEHOLDER", secrets),
    }
}

/// Collects and replaces every value in a value of any type. Types do not change, so that the
/// response does not change either.
fn replace_values(value: &mut Value, placeholder: &str, secrets: &mut Placeholders) {
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
                replace_values(item, placeholder, secrets);
            }
        }
        Value::Object(fields) => {
            for (_, field) in fields {
                replace_values(field, placeholder, secrets);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Replaces secrets everywhere in a value, including field names.
pub(super) fn replace_all(value: &mut Value, redaction: &Redaction) {
    match value {
        Value::String(text) => replace(text, redaction),
        Value::Number(number) => {
            if redaction.redacted(&number.to_string()).is_some() {
                *number = 0.into();
            }
        }
        Value::Array(items) => {
            for item in items {
                replace_all(item, redaction);
            }
        }
        Value::Object(fields) => {
            let replace_field = |(mut name, mut field)| {
                replace(&mut name, redaction);
                replace_all(&mut field, redaction);
                (name, field)
            };
            let old_fields = std::mem::take(fields).into_iter();
            let new_fields: Map<_, _> = old_fields.map(replace_field).collect();
            *fields = new_fields;
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
    fn an_invalid_context_is_recorded_unchanged() {
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
    fn secrets_of_any_kind_are_replaced_in_the_response() {
        let key = "-----BEGIN\n\"marked\\\"\n";
        let secrets =
            json!([{"id": "PEM", "value": key}, {"id": "EMPTY", "value": ""}, {"value": 7}]);
        let (_, secrets) = recorded(&json!({"request": {"context": {"secrets": secrets}}}));
        let mut response = json!({"error": {"message": format!("bad key {key}!")}});
        replace_all(&mut response, &redaction_of(&secrets));
        assert_eq!(response["error"]["message"], "bad key VALUE_OF_PEM!");
    }

    #[test]
    fn secrets_in_the_wrong_place_are_replaced() {
        for context in [
            json!({"secrets": {"K": "marked"}}),
            json!({"secrets": ["marked"]}),
            json!({"secrets": "marked"}),
            json!({"secrets": [{"name": "K", "secret": "marked"}]}),
            json!({"authorization": [{"id": "google", "token": {"access_token": "marked"}}]}),
        ] {
            let mut top_level = context.clone();
            top_level["tool_id"] = json!("A.B");
            for body in [json!({"tool_id": "A.B", "context": context}), top_level] {
                let (recorded, _) = recorded(&body);
                assert!(!recorded.to_string().contains("marked"), "{recorded}");
                assert_eq!(recorded["tool_id"], "A.B");
            }
        }
    }

    #[test]
    fn secrets_are_replaced_in_names_and_numbers() {
        let body = json!({
            "tool_id": "A.B",
            "call_id": "of marked-value",
            "input": {"x-marked-value": 1, "pin": 123_456, "page": 12, "list": [1, 2]},
            "context": {"secrets": [{"id": "K", "value": "marked-value"}, {"id": "PIN", "value": 123_456}]},
        });
        let (recorded, _) = recorded(&body);
        let expected = json!({
            "tool_id": "A.B",
            "call_id": "of VALUE_OF_K",
            "input": {"x-VALUE_OF_K": 1, "pin": 0, "page": 12, "list": [1, 2]},
            "context": {"secrets": [{"id": "K", "value": "VALUE_OF_K"}, {"id": "PIN", "value": 0}]},
        });
        assert_eq!(recorded, expected);
    }

    #[test]
    fn a_body_without_secrets_is_recorded_unchanged() {
        let text = "{\"tool_id\": \"A.B\",\n  \"input\": {\"amount\": 1.50}}";
        let (body, secrets) = without_secrets(text.as_bytes()).unwrap();
        assert_eq!(
            body.recorded(&redaction_of(&secrets)).as_deref(),
            Some(text)
        );
    }

    #[test]
    fn a_short_secret_is_not_replaced_elsewhere() {
        let body = json!({"tool_id": "Trips.Plan", "input": {"a": "a plan"},
                          "context": {"secrets": [{"id": "K", "value": "a"}]}});
        let (recorded, _) = recorded(&body);
        assert_eq!(recorded["tool_id"], "Trips.Plan");
        assert_eq!(recorded["input"]["a"], "a plan");
        assert_eq!(recorded["context"]["secrets"][0]["value"], "VALUE_OF_K");
    }
}
