//! Walking a schema: every place in it that is itself a schema.
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
/// Keywords whose value is a list of schemas. `items` was one before draft 2020-12.
const LIST: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas by name.
const NAMED: [&str; 3] = ["dependentSchemas", "patternProperties", "properties"];
/// What draft 7 does not know.
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

/// Every schema in `schema`, itself first.
fn all(schema: &Value) -> Vec<&JsonObject> {
    let mut found = Vec::new();
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        let Some(object) = schema.as_object() else {
            continue;
        };
        found.push(object);
        for (keyword, value) in object {
            let keyword = keyword.as_str();
            match value {
                Value::Object(named) if NAMED.contains(&keyword) => open.extend(named.values()),
                Value::Array(list) if LIST.contains(&keyword) => open.extend(list),
                value if ONE.contains(&keyword) => open.push(value),
                _ => {}
            }
        }
    }
    found
}

/// Calls `change` with every schema inside `object`, one level down.
pub(super) fn each_inner(object: &mut JsonObject, change: &mut dyn FnMut(&str, &mut Value)) {
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

/// The keyword by which the schema refers to another one, which definitions may not (OXP 1.0,
/// Tool Definition).
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

/// The properties, at any depth, that no description explains, by their paths.
pub(crate) fn undescribed_properties(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    add_undescribed(schema, "", &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

fn add_undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
    let Some(object) = schema.as_object() else {
        return;
    };
    for (keyword, value) in object {
        match value {
            Value::Object(properties) if keyword == "properties" => {
                for (name, property) in properties {
                    let dot = if path.is_empty() { "" } else { "." };
                    let path = format!("{path}{dot}{name}");
                    add_undescribed(property, &path, found);
                    // A constant is the tag of a variant, which says what it is by its value.
                    if ["description", "const"]
                        .iter()
                        .all(|it| property.get(it).is_none())
                    {
                        found.push(path);
                    }
                }
            }
            Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                for value in named.values() {
                    add_undescribed(value, path, found);
                }
            }
            Value::Array(list) if LIST.contains(&keyword.as_str()) => {
                for value in list {
                    add_undescribed(value, path, found);
                }
            }
            value if keyword == "items" => add_undescribed(value, &format!("{path}[]"), found),
            value if ONE.contains(&keyword.as_str()) => add_undescribed(value, path, found),
            _ => {}
        }
    }
}

/// Whether some schema in `schema` allows the type `name`.
pub(super) fn any_type(schema: &Value, name: &str) -> bool {
    all(schema).into_iter().any(|schema| is_type(schema, name))
}

/// Whether the schema itself allows the type `name`.
pub(super) fn is_type(object: &JsonObject, name: &str) -> bool {
    match object.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}

/// Whether draft 7 cannot express the schema.
pub(super) fn uses_newer_keywords(schema: &Value) -> bool {
    let schemas = all(schema);
    let uses = |keyword: &&str| schemas.iter().any(|schema| schema.contains_key(*keyword));
    NEWER.iter().any(uses)
}
