//! Walks over a schema and everything in it that is itself a schema.
//!
//! A property may be called `title` or `$ref`; only a walk that knows which keywords hold schemas
//! can tell such a name from the keyword.

use serde_json::Value;

use super::vocabulary::{
    Holds::{Data, Named, Schemas},
    Role, has_role, holds, is_newer,
};
use crate::JsonObject;

/// Returns the schemas one level below `object`, each with the keyword that holds it and, if it has
/// one, its name.
fn inner(object: &JsonObject) -> impl Iterator<Item = (&str, Option<&str>, &Value)> {
    object.iter().flat_map(|(keyword, value)| {
        let (list, named) = match (holds(keyword), value) {
            (Named, Value::Object(named)) => (&[][..], Some(named)),
            (Schemas, Value::Array(list)) => (&**list, None),
            (Schemas, schema) => (std::slice::from_ref(schema), None),
            (Data | Named, _) => (&[][..], None),
        };
        let named = named.into_iter().flatten();
        let named = named.map(|(name, schema)| (&**keyword, Some(&**name), schema));
        let listed = list.iter().map(|schema| (&**keyword, None, schema));
        named.chain(listed)
    })
}

/// Calls `change` for every schema one level below `object`.
pub fn each_inner(object: &mut JsonObject, change: &mut dyn FnMut(&str, &mut Value)) {
    for (keyword, value) in object {
        match (holds(keyword), value) {
            (Named, Value::Object(named)) => {
                for schema in named.values_mut() {
                    change(keyword, schema);
                }
            }
            (Schemas, Value::Array(list)) => {
                for schema in list {
                    change(keyword, schema);
                }
            }
            (Schemas, schema) => change(keyword, schema),
            (Data | Named, _) => {}
        }
    }
}

/// Calls `change` for `schema` and every schema in it, from the outside in.
pub fn each(schema: &mut Value, change: &mut dyn FnMut(&mut JsonObject)) {
    if let Some(object) = schema.as_object_mut() {
        change(object);
        each_inner(object, &mut |_, inner| each(inner, change));
    }
}

/// Returns every schema in `schema`, starting with itself.
fn all(schema: &Value) -> Vec<&JsonObject> {
    let mut schemas = Vec::new();
    let mut pending = vec![schema];
    while let Some(schema) = pending.pop() {
        if let Some(object) = schema.as_object() {
            schemas.push(object);
            pending.extend(inner(object).map(|(_, _, schema)| schema));
        }
    }
    schemas
}

/// Returns the keywords of every schema in `schema`.
pub(super) fn keywords(schema: &Value) -> impl Iterator<Item = &str> {
    let keywords = all(schema).into_iter().flat_map(JsonObject::keys);
    keywords.map(String::as_str)
}

/// Returns a keyword for referencing other schemas, which definitions must not use (OXP 1.0, Tool
/// Definition).
#[must_use]
pub fn forbidden_reference(schema: &Value) -> Option<&str> {
    let with_role = |role| keywords(schema).find(|it| has_role(it, &[role]));
    with_role(Role::Reference).or_else(|| with_role(Role::Definitions))
}

/// Returns the paths of all properties, at any depth, that have no description.
pub fn undescribed_properties(schema: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    add_undescribed(schema, "", &mut paths);
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn add_undescribed(schema: &Value, path: &str, paths: &mut Vec<String>) {
    for (keyword, name, schema) in schema.as_object().into_iter().flat_map(inner) {
        let dot = if path.is_empty() { "" } else { "." };
        match (keyword, name) {
            ("properties", Some(name)) => {
                let path = format!("{path}{dot}{name}");
                add_undescribed(schema, &path, paths);
                // A constant is the tag of a variant; its value describes it.
                let describing = ["description", "const"];
                if describing.iter().all(|it| schema.get(it).is_none()) {
                    paths.push(path);
                }
            }
            ("items", _) => add_undescribed(schema, &format!("{path}[]"), paths),
            _ => add_undescribed(schema, path, paths),
        }
    }
}

/// Returns true if any schema in `schema` allows the type `name`.
pub(super) fn any_type(schema: &Value, name: &str) -> bool {
    all(schema).into_iter().any(|schema| is_type(schema, name))
}

/// Returns true if the schema itself allows the type `name`.
pub fn is_type(object: &JsonObject, name: &str) -> bool {
    match object.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}

/// Returns true if draft 7 cannot express the schema.
pub(super) fn uses_newer_keywords(schema: &Value) -> bool {
    keywords(schema).any(is_newer)
}
