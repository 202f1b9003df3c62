//! `null` for an optional property, which means the same as leaving it out.

use serde_json::Value;

/// True for a value with a `null` at any depth: most inputs have none.
pub(super) fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(object) => object.values().any(has_null),
        _ => false,
    }
}

/// Removes the optional properties of `value` that are `null` where `schema` does not allow it, at
/// every depth that `properties` and `items` reach.
pub(super) fn drop_optional(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(object) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            object.retain(|name, value| {
                let property = properties.get(name);
                !(value.is_null()
                    && property.is_some_and(forbids_null)
                    && !is_required(schema, name))
            });
            for (name, value) in object {
                if let Some(property) = properties.get(name) {
                    drop_optional(property, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    drop_optional(schema, item);
                }
            }
        }
        _ => {}
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|it| it == name))
}

/// True if the schema's own keywords forbid `null`.
fn forbids_null(schema: &Value) -> bool {
    let by_type = match schema.get("type") {
        Some(Value::String(one)) => one != "null",
        Some(Value::Array(several)) => several.iter().all(|it| it != "null"),
        _ => false,
    };
    let values = schema.get("enum").and_then(Value::as_array);
    by_type || values.is_some_and(|values| !values.contains(&Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_optional_properties_that_forbid_null_are_dropped() {
        let text = json!({"type": "string"});
        let schema = json!({
            "properties": {
                "optional": text, "required": text, "any": {},
                "nullable": {"type": ["string", "null"]},
                "list": {"type": "array", "items": {"properties": {"inner": text}}},
            },
            "required": ["required"],
        });
        let all_null = json!({"optional": null, "required": null, "any": null, "nullable": null,
                              "list": [{"inner": null}, null], "unknown": null});
        let mut value = all_null;
        drop_optional(&schema, &mut value);
        let expected = json!({"required": null, "any": null, "nullable": null,
                              "list": [{}, null], "unknown": null});
        assert_eq!(value, expected);
    }
}
