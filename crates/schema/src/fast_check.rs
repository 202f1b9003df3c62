//! A check of values without `jsonschema`, where the schema has only common keywords.
//!
//! `jsonschema` first builds the meta-schema of a draft, which takes about as long as the rest of a
//! cold start, and then a validator for each schema. Most calls are valid, and most schemas are
//! derived from types: for them, this check suffices. It gives no reasons: `jsonschema` explains
//! why a value is invalid.

use serde_json::{Map, Value};

use crate::vocabulary::{KINDS, is_of_kind, list_in};

/// Floats represent every integer below this one. A number that rounds to such a limit equals it.
const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;

/// Returns true for a schema that has only keywords that this check knows, and is valid. Whatever
/// it is not sure of is left to `jsonschema`, which also knows why a schema is invalid.
pub(super) fn knows(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(object) => object
            .iter()
            .all(|(keyword, rule)| knows_rule(keyword, rule)),
        _ => false,
    }
}

fn knows_rule(keyword: &str, rule: &Value) -> bool {
    match keyword {
        "type" => is_kind(rule) || is_set(rule, is_kind),
        // `1` equals `1.0` in JSON Schema, also within arrays and objects.
        "const" => is_simple(rule),
        // The meta-schemas disagree about empty and repeated values.
        "enum" => is_set(rule, is_simple),
        "properties" => rule.as_object().is_some_and(|it| it.values().all(knows)),
        "additionalProperties" | "items" => knows(rule),
        "required" => *rule == Value::Array(Vec::new()) || is_set(rule, Value::is_string),
        "minItems" | "maxItems" | "minLength" | "maxLength" => rule.is_u64(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            rule.as_f64().is_some_and(|it| it.abs() < FIRST_INEXACT)
        }
        "allOf" | "anyOf" | "oneOf" => {
            let branches = rule.as_array();
            branches.is_some_and(|it| !it.is_empty() && it.iter().all(knows))
        }
        "title" | "description" | "$comment" => rule.is_string(),
        "examples" => rule.is_array(),
        "deprecated" | "readOnly" | "writeOnly" => rule.is_boolean(),
        "default" => true,
        "uniqueItems" => *rule == false,
        _ => false,
    }
}

fn is_kind(name: &Value) -> bool {
    KINDS.iter().any(|kind| name == kind)
}

fn is_simple(value: &Value) -> bool {
    value.is_string() || value.is_null() || value.is_boolean()
}

/// Returns true for a list of different values, at least one, which all have this property.
fn is_set(list: &Value, has: fn(&Value) -> bool) -> bool {
    let values = list_in(Some(list));
    let mut indexed = values.iter().enumerate();
    !values.is_empty() && indexed.all(|(at, value)| has(value) && !values[..at].contains(value))
}

/// Returns true if a value is valid under a schema that this check [`knows`].
pub(super) fn is_valid(schema: &Value, value: &Value) -> bool {
    match schema {
        Value::Object(object) => object
            .iter()
            .all(|(keyword, rule)| satisfies(value, keyword, rule, object)),
        constant => *constant == true,
    }
}

/// Checks a value against one keyword, which limits only values of its own type.
fn satisfies(value: &Value, keyword: &str, rule: &Value, schema: &Map<String, Value>) -> bool {
    match (keyword, value) {
        ("type", _) => match rule {
            Value::Array(kinds) => kinds.iter().any(|kind| has_kind(value, kind)),
            kind => has_kind(value, kind),
        },
        ("const", _) => value == rule,
        ("enum", _) => list_in(Some(rule)).contains(value),
        ("allOf", _) => list_in(Some(rule)).iter().all(|it| is_valid(it, value)),
        ("anyOf", _) => list_in(Some(rule)).iter().any(|it| is_valid(it, value)),
        ("oneOf", _) => {
            let branches = list_in(Some(rule)).iter();
            branches.filter(|it| is_valid(it, value)).take(2).count() == 1
        }
        ("properties", Value::Object(fields)) => fields
            .iter()
            .all(|(name, value)| rule.get(name).is_none_or(|it| is_valid(it, value))),
        ("additionalProperties", Value::Object(fields)) => {
            let properties = schema.get("properties");
            let is_other = |name: &str| properties.is_none_or(|it| it.get(name).is_none());
            fields
                .iter()
                .all(|(name, value)| !is_other(name) || is_valid(rule, value))
        }
        ("required", Value::Object(fields)) => {
            let mut names = list_in(Some(rule)).iter().filter_map(Value::as_str);
            names.all(|name| fields.contains_key(name))
        }
        ("items", Value::Array(items)) => items.iter().all(|item| is_valid(rule, item)),
        ("minItems", Value::Array(items)) => Some(items.len() as u64) >= rule.as_u64(),
        ("maxItems", Value::Array(items)) => Some(items.len() as u64) <= rule.as_u64(),
        ("minLength", Value::String(text)) => Some(length(text)) >= rule.as_u64(),
        ("maxLength", Value::String(text)) => Some(length(text)) <= rule.as_u64(),
        ("minimum", Value::Number(number)) => number.as_f64() >= rule.as_f64(),
        ("maximum", Value::Number(number)) => number.as_f64() <= rule.as_f64(),
        ("exclusiveMinimum", Value::Number(number)) => number.as_f64() > rule.as_f64(),
        ("exclusiveMaximum", Value::Number(number)) => number.as_f64() < rule.as_f64(),
        _ => true,
    }
}

fn has_kind(value: &Value, kind: &Value) -> bool {
    // A whole float is an integer, too.
    let is_whole = || value.as_f64().is_some_and(|it| it.fract() == 0.0);
    kind.as_str().is_some_and(|it| is_of_kind(value, it)) || (kind == "integer" && is_whole())
}

fn length(text: &str) -> u64 {
    text.chars().count() as u64
}

#[cfg(test)]
mod tests;
