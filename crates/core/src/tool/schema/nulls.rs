//! `null` for an optional property, which means the same as leaving it out.

use serde_json::Value;

use super::{
    expected::{items_at, list, property_of},
    reduced::keywords::values_of,
    walk::is_type,
};

/// Removes the optional properties of `value` that are `null` where `schema` does not allow it, at
/// every depth that `properties` and `items` reach.
pub(super) fn drop_optional_nulls(schema: &Value, value: &mut Value) {
    // Most values have none.
    if has_null(value) {
        drop_in(&[schema], value);
    }
}

/// Returns true for a value with a `null` at any depth.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(object) => object.values().any(has_null),
        _ => false,
    }
}

/// Removes nulls from a value that all of these schemas describe, from the outside in.
fn drop_in(schemas: &[&Value], value: &mut Value) {
    let parts = parts(schemas, value);
    match value {
        Value::Object(object) => {
            // Without a value, every branch is possible.
            let all = self::parts(schemas, &Value::Null);
            object.retain(|name, value| !value.is_null() || !is_optional(name, &parts, &all));
            for (name, value) in object {
                let inner = parts.iter().filter_map(|part| property_of(part, name));
                drop_in(&inner.collect::<Vec<_>>(), value);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let inner = parts.iter().filter_map(|part| items_at(part, index));
                drop_in(&inner.collect::<Vec<_>>(), item);
            }
        }
        _ => {}
    }
}

/// Returns true if the parts of an object's schema neither require a property nor let it be `null`.
/// If none of them declares the property, another branch of a union may do so.
fn is_optional(name: &str, parts: &[&Value], all: &[&Value]) -> bool {
    let schemas = [parts, all].map(|parts| {
        let declared = parts.iter().map(|part| part.get("properties")?.get(name));
        declared.flatten().collect::<Vec<_>>()
    });
    let declared = schemas.iter().find(|it| !it.is_empty());
    let is_required = |part: &&Value| list(part, "required").iter().any(|it| it == name);
    declared.is_some_and(|it| it.iter().all(|it| forbids_null(it)))
        && !parts.iter().any(is_required)
}

/// Returns the schemas, and those that they combine, except for branches that the value cannot have.
fn parts<'a>(schemas: &[&'a Value], value: &Value) -> Vec<&'a Value> {
    let mut parts = schemas.to_vec();
    let mut at = 0;
    while let Some(schema) = parts.get(at).copied() {
        parts.extend(list(schema, "allOf"));
        for keyword in ["anyOf", "oneOf"] {
            parts.extend(possible_branches(list(schema, keyword), value));
        }
        at += 1;
    }
    parts
}

/// Returns the branches that the value may have: those whose constants it has and, of these, those
/// whose required properties it has.
fn possible_branches<'a>(branches: &'a [Value], value: &Value) -> Vec<&'a Value> {
    let mut possible: Vec<_> = branches.iter().collect();
    for is_possible in [has_constants, has_required] {
        let fewer = possible.iter().copied();
        let fewer: Vec<_> = fewer.filter(|it| is_possible(it, value)).collect();
        if !fewer.is_empty() {
            possible = fewer;
        }
    }
    possible
}

/// Returns true if the value has the constants of a branch.
fn has_constants(branch: &Value, value: &Value) -> bool {
    let kind = branch.get("type").and_then(Value::as_str);
    if value.is_object() && kind.is_some_and(|kind| kind != "object") {
        return false;
    }
    let properties = branch.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().all(|(name, property)| {
        let Some(value) = value.get(name).filter(|it| !it.is_null()) else {
            return true;
        };
        let values = property.as_object().and_then(values_of);
        values.is_none_or(|it| it.contains(value))
    })
}

/// Returns true if the value has the required properties of a branch.
fn has_required(branch: &Value, value: &Value) -> bool {
    let mut names = list(branch, "required").iter().filter_map(Value::as_str);
    names.all(|name| {
        let property = value.get(name);
        property.is_some_and(|it| !it.is_null() || !forbids_null(&branch["properties"][name]))
    })
}

/// Returns true if the schema's type, constants or branches forbid `null`.
fn forbids_null(schema: &Value) -> bool {
    let Some(object) = schema.as_object() else {
        return *schema == false;
    };
    let unions = ["anyOf", "oneOf"].map(|keyword| list(schema, keyword));
    let mut unions = unions.iter().filter(|branches| !branches.is_empty());
    (object.contains_key("type") && !is_type(object, "null"))
        || values_of(object).is_some_and(|values| !values.contains(&Value::Null))
        || list(schema, "allOf").iter().any(forbids_null)
        || unions.any(|branches| branches.iter().all(forbids_null))
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
    fn nulls_are_dropped_through_combinations() {
        let text = json!({"type": "string"});
        let schema = json!({
            "properties": {
                "both": {"allOf": [{"properties": {"a": text}}, {"required": ["a"]}]},
                "map": {"type": "object", "additionalProperties": {"properties": {"a": text}}},
                "pair": {"prefixItems": [{"properties": {"a": text}}, {}]},
                "listed": {"enum": ["a"]}, "constant": {"const": 1},
                "either": {"anyOf": [text, {"type": "integer"}]},
                "maybe": {"anyOf": [text, {"type": "null"}]},
            },
        });
        let mut value = json!({
            "both": {"a": null},
            "map": {"x": {"a": null}, "y": null}, "pair": [{"a": null}, null],
            "listed": null, "constant": null, "either": null, "maybe": null,
        });
        drop_optional_nulls(&schema, &mut value);
        let expected = json!({
            "both": {"a": null}, "map": {"x": {}, "y": null},
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
}
