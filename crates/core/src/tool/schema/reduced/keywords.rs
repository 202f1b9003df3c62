//! The types and values that a schema's keywords allow.

use crate::json::JsonObject;
use std::slice;

use serde_json::{Value, json};

pub const KINDS: [&str; 7] = [
    "object", "array", "string", "number", "integer", "boolean", "null",
];

/// Returns the types that a schema allows, without duplicates; all types if it does not restrict
/// them.
pub fn kinds_of(schema: &Value) -> Vec<&'static str> {
    let list = |keyword| schema.get(keyword).and_then(Value::as_array);
    let kind_named = |name: &Value| KINDS.into_iter().find(|kind| name == kind);
    let all: Vec<_> = match (schema.get("type"), schema.as_object().and_then(values_of)) {
        (Some(Value::Array(several)), _) => several.iter().filter_map(kind_named).collect(),
        (Some(one), _) => kind_named(one).into_iter().collect(),
        (None, Some(values)) => values.iter().map(kind_of).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ if schema.get("items").is_some() => vec!["array"],
        _ => {
            let parts = list("allOf").into_iter().flatten().map(kinds_of);
            let unions = [list("oneOf"), list("anyOf")].into_iter().flatten();
            let unions = unions.map(|branches| branches.iter().flat_map(kinds_of).collect());
            parts.chain(unions).min_by_key(Vec::len).unwrap_or_default()
        }
    };
    let mut kinds = Vec::new();
    for kind in all {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        KINDS.into()
    } else {
        kinds
    }
}

/// Returns the type of a value.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns true if a value may be in the `enum` of a type: clients support scalar choices only.
pub fn fits(value: &Value, kind: &str) -> bool {
    let of_value = kind_of(value);
    let is_scalar = !["array", "null", "object"].contains(&of_value);
    is_scalar && (of_value == kind || (of_value, kind) == ("integer", "number"))
}

/// Returns the values of `const` or `enum`.
pub fn values_of(schema: &JsonObject) -> Option<&[Value]> {
    let constant = schema.get("const").map(slice::from_ref);
    constant.or_else(|| Some(schema.get("enum")?.as_array()?))
}

/// Returns the values of branches, if all of them are constants, each with its branch's description.
pub fn constants_in(branches: &[Value]) -> Option<Vec<(&Value, Option<&str>)>> {
    let mut constants = Vec::new();
    for branch in branches {
        let text = branch.get("description").and_then(Value::as_str);
        let values = values_of(branch.as_object()?)?;
        constants.extend(values.iter().map(|value| (value, text)));
    }
    Some(constants)
}

/// Returns true if a schema has a type and no other keyword.
pub(crate) fn is_bare(schema: &Value) -> bool {
    matches!(schema, Value::Object(it) if it.len() == 1 && it.contains_key("type"))
}

pub fn listed(values: &[Value], separator: &str) -> String {
    let values: Vec<_> = values.iter().map(Value::to_string).collect();
    values.join(separator)
}

pub fn names(list: Option<Value>) -> Vec<String> {
    let names = list.and_then(|list| serde_json::from_value(list).ok());
    names.unwrap_or_default()
}

pub fn object_of(schema: Value) -> JsonObject {
    match schema {
        Value::Object(schema) => schema,
        Value::Bool(false) => JsonObject::from_iter([("not".to_owned(), json!({}))]),
        _ => JsonObject::new(),
    }
}
