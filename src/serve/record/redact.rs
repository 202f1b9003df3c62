//! Taking secrets out of what is recorded.

use serde_json::Value;

/// Secret values, each with its placeholder.
pub(super) type Secrets = Vec<(String, String)>;

/// The body with placeholders, and what they stand for. `None` where nothing can be told about
/// the body.
pub(super) fn without_secrets(body: &[u8]) -> Option<(Option<String>, Secrets)> {
    if body.is_empty() {
        return Some((None, Secrets::new()));
    }
    let mut value: Value = serde_json::from_slice(body).ok()?;
    let mut secrets = Secrets::new();
    for call in ["", "/request"] {
        for (list, field) in [("secrets", "value"), ("authorization", "token")] {
            // Beside the context is the wrong place, and no reason to publish what stands there.
            for place in ["/context/", "/"] {
                if let Some(list) = value.pointer_mut(&format!("{call}{place}{list}")) {
                    take_out(list, field, &mut secrets);
                }
            }
        }
    }
    if secrets.is_empty() {
        return Some((Some(String::from_utf8(body.to_vec()).ok()?), secrets));
    }
    for input in ["/input", "/inputs", "/request/input", "/request/inputs"] {
        if let Some(input) = value.pointer_mut(input) {
            replace_all(input, &secrets);
        }
    }
    Some((Some(value.to_string()), secrets))
}

/// Takes the secrets out of a list of `{"id": …, FIELD: …}`; out of anything else, all there is.
fn take_out(value: &mut Value, field: &str, secrets: &mut Secrets) {
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
fn take_all(value: &mut Value, placeholder: &str, secrets: &mut Secrets) {
    match value {
        Value::String(text) => {
            secrets.push((std::mem::take(text), placeholder.to_owned()));
            placeholder.clone_into(text);
        }
        Value::Number(number) => *number = 0.into(),
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

/// Replaces secrets in all strings of a value, the names of fields aside.
pub(super) fn replace_all(value: &mut Value, secrets: &Secrets) {
    /// Shorter ones stand in ordinary words by chance; they are no secrets that matter.
    const SHORTEST: usize = 6;
    match value {
        Value::String(text) => {
            for (secret, placeholder) in secrets.iter().filter(|(it, _)| it.len() >= SHORTEST) {
                if text.contains(secret) {
                    *text = text.replace(secret, placeholder);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                replace_all(item, secrets);
            }
        }
        Value::Object(fields) => {
            for (_, field) in fields {
                replace_all(field, secrets);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recorded(body: &Value) -> (Value, Secrets) {
        let (text, secrets) = without_secrets(body.to_string().as_bytes()).unwrap();
        (serde_json::from_str(&text.unwrap()).unwrap(), secrets)
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
        replace_all(&mut answer, &secrets);
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
    fn short_secrets_do_not_wreck_the_rest() {
        let body = json!({"tool_id": "Trips.Plan", "input": {"a": "a plan"},
                          "context": {"secrets": [{"id": "K", "value": "a"}]}});
        let (recorded, _) = recorded(&body);
        assert_eq!(recorded["tool_id"], "Trips.Plan");
        assert_eq!(recorded["input"]["a"], "a plan");
        assert_eq!(recorded["context"]["secrets"][0]["value"], "VALUE_OF_K");
    }
}
