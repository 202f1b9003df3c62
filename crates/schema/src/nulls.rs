//! `null` for an optional property, which means the same as leaving it out.

use serde_json::Value;

use super::{
    expected::{items_at, property_of},
    vocabulary::{list_in, values_of},
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
    let is_required = |part: &&Value| list_in(part.get("required")).iter().any(|it| it == name);
    declared.is_some_and(|it| it.iter().all(|it| forbids_null(it)))
        && !parts.iter().any(is_required)
}

/// Returns the schemas, and those that they combine, except for branches that the value cannot have.
fn parts<'a>(schemas: &[&'a Value], value: &Value) -> Vec<&'a Value> {
    let mut parts = schemas.to_vec();
    let mut at = 0;
    while let Some(schema) = parts.get(at).copied() {
        parts.extend(list_in(schema.get("allOf")));
        for keyword in ["anyOf", "oneOf"] {
            parts.extend(possible_branches(list_in(schema.get(keyword)), value));
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
    let mut names = list_in(branch.get("required"))
        .iter()
        .filter_map(Value::as_str);
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
    let unions = ["anyOf", "oneOf"].map(|keyword| list_in(schema.get(keyword)));
    let mut unions = unions.iter().filter(|branches| !branches.is_empty());
    (object.contains_key("type") && !is_type(object, "null"))
        || values_of(object).is_some_and(|values| !values.contains(&Value::Null))
        || list_in(schema.get("allOf")).iter().any(forbids_null)
        || unions.any(|branches| branches.iter().all(forbids_null))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schema; in the lines below it, a value, and what remains of it unless that is all.
    const SCHEMAS: &str = r#"
{"properties": {"optional": {"type": "string"}, "required": {"type": "string"}, "any": {}, "nullable": {"type": ["string", "null"]}, "list": {"type": "array", "items": {"properties": {"inner": {"type": "string"}}}}}, "required": ["required"]}
    {"optional": null} => {}
    {"required": null, "any": null, "nullable": null, "unknown": null}
    {"list": [{"inner": null}, null]} => {"list": [{}, null]}
{"properties": {"both": {"allOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["a"]}]}}}
    {"both": {"a": null}}
{"properties": {"map": {"type": "object", "additionalProperties": {"properties": {"a": {"type": "string"}}}}, "pair": {"prefixItems": [{"properties": {"a": {"type": "string"}}}, {}]}}}
    {"map": {"x": {"a": null}, "y": null}, "pair": [{"a": null}, null]} => {"map": {"x": {}, "y": null}, "pair": [{}, null]}
{"properties": {"listed": {"enum": ["a"]}, "constant": {"const": 1}, "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    {"listed": null, "constant": null, "either": null, "maybe": null} => {"maybe": null}
{"oneOf": [{"properties": {"tag": {"const": "nullable"}, "p": {"type": ["string", "null"]}}, "required": ["tag"]}, {"properties": {"tag": {"const": "optional"}, "p": {"type": "string"}}, "required": ["tag"]}, {"properties": {"tag": {"const": "required"}, "p": {"type": "string"}}, "required": ["tag", "p"]}]}
    {"tag": "nullable", "p": null}
    {"tag": "optional", "p": null} => {"tag": "optional"}
    {"tag": "required", "p": null}
{"oneOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}
    {"a": "x", "b": null} => {"a": "x"}
{"anyOf": [{"type": "null"}, {"type": "object", "required": ["a"], "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "string"}}}]}
    {"a": null, "b": null} => {"a": null}
"#;

    /// Through combinations, the branch of a value decides which of its nulls are dropped.
    #[test]
    fn only_optional_properties_that_forbid_null_are_dropped() {
        let mut schema = Value::Null;
        for row in SCHEMAS.lines().skip(1) {
            let Some(row) = row.strip_prefix("    ") else {
                schema = row.parse().unwrap();
                continue;
            };
            let (value, rest) = row.split_once(" => ").unwrap_or((row, row));
            let mut value = value.parse().unwrap();
            drop_optional_nulls(&schema, &mut value);
            assert_eq!(value, rest.parse::<Value>().unwrap(), "{schema}");
        }
    }
}
