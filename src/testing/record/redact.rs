//! Removal of secrets from recordings.

use std::slice;

use serde_json::Value;

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

/// Puts placeholders in the places for secrets in a request's body, which are lists of
/// `{"id": …, FIELD: …}`, and returns what was there. In anything else, every value counts as a
/// secret.
pub(super) fn take_secrets(body: &mut Value) -> Placeholders {
    let mut secrets = Placeholders::new();
    for (list, field) in Protocol::secrets() {
        let items = match body.pointer_mut(list) {
            None => continue,
            Some(Value::Array(items)) => &mut items[..],
            Some(other) => slice::from_mut(other),
        };
        for item in items {
            let id = item.get("id").and_then(Value::as_str).unwrap_or("?");
            let placeholder = format!("{}_OF_{id}", field.to_uppercase());
            let has_field = item.get(field).is_some();
            let secret = if has_field { &mut item[field] } else { item };
            *secret = with_texts(secret.take(), false, &mut |text| {
                secrets.push((text.into(), placeholder.clone()));
                placeholder.clone()
            });
        }
    }
    secrets
}

/// Returns a value without secrets, also in field names.
pub(super) fn redacted(value: Value, redaction: &Redaction) -> Value {
    with_texts(value, true, &mut |text| redact(&text, redaction))
}

pub(super) fn redact(text: &str, redaction: &Redaction) -> String {
    redaction.redacted(text).unwrap_or_else(|| text.to_owned())
}

/// Changes all texts in a value. Types do not change, so that the response does not change either:
/// a number whose text would change becomes 0.
fn with_texts(value: Value, in_names: bool, change: &mut impl FnMut(String) -> String) -> Value {
    match value {
        Value::String(text) => change(text).into(),
        Value::Number(number) => {
            let text = number.to_string();
            let is_same = change(text.clone()) == text;
            Value::Number(if is_same { number } else { 0.into() })
        }
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|it| with_texts(it, in_names, change)).collect()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, field)| {
                let name = if in_names { change(name) } else { name };
                (name, with_texts(field, in_names, change))
            });
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recorded(body: &Value) -> (Value, Placeholders) {
        let mut body = body.clone();
        let secrets = take_secrets(&mut body);
        (redacted(body, &redaction_of(&secrets)), secrets)
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
            json!({"secrets": null}),
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
        let response = json!({"error": {"message": format!("bad key {key}!")}});
        let response = redacted(response, &redaction_of(&secrets));
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
    fn a_short_secret_is_not_replaced_elsewhere() {
        let body = json!({"tool_id": "Trips.Plan", "input": {"a": "a plan"},
                          "context": {"secrets": [{"id": "K", "value": "a"}]}});
        let (recorded, _) = recorded(&body);
        assert_eq!(recorded["tool_id"], "Trips.Plan");
        assert_eq!(recorded["input"]["a"], "a plan");
        assert_eq!(recorded["context"]["secrets"][0]["value"], "VALUE_OF_K");
    }
}
