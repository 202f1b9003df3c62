//! Walks over a schema and everything in it that is itself a schema.
//!
//! A property may be called `title` or `$ref`; only a walk that knows which keywords hold schemas
//! can tell such a name from the keyword.

use crate::payload::JsonObject;
use serde_json::Value;

/// Keywords whose value is one schema.
const ONE: [&str; 11] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas. `items` could be one before draft 2020-12.
const LIST: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas by name.
pub(super) const NAMED: [&str; 3] = ["dependentSchemas", "patternProperties", "properties"];
/// Keywords that draft 7 does not have.
const NEWER: [&str; 9] = [
    "$dynamicRef",
    "dependentRequired",
    "dependentSchemas",
    "maxContains",
    "minContains",
    "prefixItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$vocabulary",
];

/// Every schema in `schema`, starting with itself.
fn all(schema: &Value) -> Vec<&JsonObject> {
    let mut schemas = Vec::new();
    let mut pending = vec![schema];
    while let Some(schema) = pending.pop() {
        let Some(object) = schema.as_object() else {
            continue;
        };
        schemas.push(object);
        for (keyword, value) in object {
            let keyword = keyword.as_str();
            match value {
                Value::Object(named) if NAMED.contains(&keyword) => pending.extend(named.values()),
                Value::Array(list) if LIST.contains(&keyword) => pending.extend(list),
                value if ONE.contains(&keyword) => pending.push(value),
                _ => {}
            }
        }
    }
    schemas
}

/// Calls `change` for every schema one level below `object`.
pub(crate) fn each_inner(object: &mut JsonObject, change: &mut dyn FnMut(&str, &mut Value)) {
    for (keyword, value) in object {
        let keyword = keyword.as_str();
        match value {
            Value::Object(named) if NAMED.contains(&keyword) => {
                named
                    .iter_mut()
                    .for_each(|(_, value)| change(keyword, value));
            }
            Value::Array(list) if LIST.contains(&keyword) => {
                for value in list {
                    change(keyword, value);
                }
            }
            value if ONE.contains(&keyword) => change(keyword, value),
            _ => {}
        }
    }
}

/// A keyword for referencing other schemas, which definitions must not use (OXP 1.0, Tool
/// Definition).
pub(crate) fn forbidden_reference(schema: &Value) -> Option<&'static str> {
    const FORBIDDEN: [&str; 5] = [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "$defs",
        "definitions",
    ];
    let schemas = all(schema);
    FORBIDDEN
        .into_iter()
        .find(|keyword| schemas.iter().any(|schema| schema.contains_key(*keyword)))
}

/// The paths of all properties, at any depth, that have no description.
pub(crate) fn undescribed_properties(schema: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    add_undescribed(schema, "", &mut paths);
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn add_undescribed(schema: &Value, path: &str, paths: &mut Vec<String>) {
    let Some(object) = schema.as_object() else {
        return;
    };
    for (keyword, value) in object {
        match value {
            Value::Object(properties) if keyword == "properties" => {
                for (name, property) in properties {
                    let dot = if path.is_empty() { "" } else { "." };
                    let path = format!("{path}{dot}{name}");
                    add_undescribed(property, &path, paths);
                    // A constant is the tag of a variant; its value describes it.
                    if ["description", "const"]
                        .iter()
                        .all(|it| property.get(it).is_none())
                    {
                        paths.push(path);
                    }
                }
            }
            Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                for value in named.values() {
                    add_undescribed(value, path, paths);
                }
            }
            Value::Array(list) if LIST.contains(&keyword.as_str()) => {
                for value in list {
                    add_undescribed(value, path, paths);
                }
            }
            value if keyword == "items" => add_undescribed(value, &format!("{path}[]"), paths),
            value if ONE.contains(&keyword.as_str()) => add_undescribed(value, path, paths),
            _ => {}
        }
    }
}

/// True if any schema in `schema` allows the type `name`.
pub(super) fn any_type(schema: &Value, name: &str) -> bool {
    all(schema).into_iter().any(|schema| is_type(schema, name))
}

/// True if the schema itself allows the type `name`.
pub(super) fn is_type(object: &JsonObject, name: &str) -> bool {
    match object.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}

/// True if draft 7 cannot express the schema.
pub(super) fn uses_newer_keywords(schema: &Value) -> bool {
    let schemas = all(schema);
    let uses = |keyword: &&str| schemas.iter().any(|schema| schema.contains_key(*keyword));
    NEWER.iter().any(uses)
}
