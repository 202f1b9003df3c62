//! `null` for an optional property, which means the same as leaving it out.

use serde_json::Value;

use super::resolved::{Resolved, list};

/// Returns true for a value with a `null` at any depth: most inputs have none.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(object) => object.values().any(has_null),
        _ => false,
    }
}

/// Removes the optional properties of `value` that are `null` where `schema` does not allow it, at
/// every depth that `properties`, `items` and references reach.
pub fn drop_optional_nulls(schema: &Value, value: &mut Value) {
    // Most values have none.
    if has_null(value) {
        Resolved::new(schema).walk(value, &drop_in);
    }
}

fn drop_in(resolved: &Resolved<'_>, schemas: &[&Value], value: &mut Value) {
    let fields = value.as_object().into_iter().flatten();
    let nulls = fields.filter(|(_, value)| value.is_null());
    let nulls: Vec<_> = nulls.map(|(name, _)| name.clone()).collect();
    if nulls.is_empty() {
        return;
    }
    let parts = resolved.parts(schemas, value);
    // Without a value, every branch is possible.
    let all = resolved.parts(schemas, &Value::Null);
    let optional = nulls
        .iter()
        .filter(|name| is_optional(resolved, name, &parts, &all));
    let optional: Vec<_> = optional.collect();
    if let Value::Object(object) = value {
        object.retain(|name, _| !optional.contains(&name));
    }
}

/// Returns true if the parts of an object's schema neither require a property nor let it be `null`.
/// If none of them declares the property, another branch of a union may do so.
fn is_optional(resolved: &Resolved<'_>, name: &str, parts: &[&Value], all: &[&Value]) -> bool {
    let schemas = [parts, all].map(|parts| {
        let declared = parts.iter().map(|part| part.get("properties")?.get(name));
        declared.flatten().collect::<Vec<_>>()
    });
    let declared = schemas.iter().find(|it| !it.is_empty());
    declared.is_some_and(|it| it.iter().all(|it| resolved.forbids_null(it)))
        && !parts.iter().any(|part| is_required(part, name))
}

fn is_required(schema: &Value, name: &str) -> bool {
    list(schema, "required").iter().any(|it| it == name)
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
        drop_optional_nulls(&schema, &mut value);
        let expected = json!({"required": null, "any": null, "nullable": null,
                              "list": [{}, null], "unknown": null});
        assert_eq!(value, expected);
    }

    #[test]
    fn nulls_are_dropped_through_references_and_combinations() {
        let text = json!({"type": "string"});
        let schema = json!({
            "$defs": {"Pet": {"type": "object", "properties": {"name": text, "next": {"$ref": "#/$defs/Pet"}}}},
            "properties": {
                "pet": {"$ref": "#/$defs/Pet"},
                "both": {"allOf": [{"properties": {"a": text}}, {"required": ["a"]}]},
                "map": {"type": "object", "additionalProperties": {"properties": {"a": text}}},
                "pair": {"prefixItems": [{"properties": {"a": text}}, {}]},
                "listed": {"enum": ["a"]}, "constant": {"const": 1},
                "either": {"anyOf": [text, {"type": "integer"}]},
                "maybe": {"anyOf": [text, {"type": "null"}]},
            },
        });
        let mut value = json!({
            "pet": {"name": null, "next": {"next": null, "name": "a"}}, "both": {"a": null},
            "map": {"x": {"a": null}, "y": null}, "pair": [{"a": null}, null],
            "listed": null, "constant": null, "either": null, "maybe": null,
        });
        drop_optional_nulls(&schema, &mut value);
        let expected = json!({
            "pet": {"next": {"name": "a"}}, "both": {"a": null}, "map": {"x": {}, "y": null},
            "pair": [{}, null], "maybe": null,
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn the_branch_of_a_value_decides_which_of_its_nulls_are_dropped() {
        let branch = |tag: &str, kind: Value, required: Value| json!({"properties": {"tag": {"const": tag}, "p": {"type": kind}}, "required": required});
        let schema = json!({"oneOf": [
            branch("nullable", json!(["string", "null"]), json!(["tag"])),
            branch("optional", json!("string"), json!(["tag"])),
            branch("required", json!("string"), json!(["tag", "p"])),
        ]});
        for (tag, keeps) in [("nullable", true), ("optional", false), ("required", true)] {
            let mut value = json!({"tag": tag, "p": null});
            drop_optional_nulls(&schema, &mut value);
            assert_eq!(value.get("p").is_some(), keeps, "{tag}");
        }
        // An externally tagged union: the other branch's property is not part of the value.
        let schema = json!({"oneOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]});
        let mut value = json!({"a": "x", "b": null});
        drop_optional_nulls(&schema, &mut value);
        assert_eq!(value, json!({"a": "x"}));
    }

    #[test]
    fn a_required_property_that_is_null_does_not_hide_the_branch_of_a_value() {
        let schema = json!({"anyOf": [
            {"type": "null"},
            {"type": "object", "required": ["a"], "properties": {
                "a": {"type": ["string", "null"]}, "b": {"type": "string"}}},
        ]});
        let mut value = json!({"a": null, "b": null});
        drop_optional_nulls(&schema, &mut value);
        assert_eq!(value, json!({"a": null}));
    }

    #[test]
    fn combinations_that_double_at_every_depth_end() {
        let twice = json!({"allOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]});
        let schema = json!({"$defs": {"x": twice}, "properties": {"a": twice}});
        let mut value = json!({"a": null, "b": {"a": null}});
        let unchanged = value.clone();
        drop_optional_nulls(&schema, &mut value);
        assert_eq!(value, unchanged);
    }

    #[test]
    fn a_reference_to_itself_ends() {
        let schema = json!({"$ref": "#", "allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        let mut value = json!({"a": null});
        drop_optional_nulls(&schema, &mut value);
        assert_eq!(value, json!({"a": null}));
    }
}
