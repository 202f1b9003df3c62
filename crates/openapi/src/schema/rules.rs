//! The keywords of a schema that have no schemas in them.

use std::{
    collections::{HashMap, HashSet},
    sync::{LazyLock, Mutex, PoisonError},
};

use lambda_tools_core::tool::schema::Schema;
use serde_json::{Value, json};

use super::{Object, list};

/// The maximum number of values that are listed; of more, only the first ones are named.
const MOST_VALUES: usize = 100;
const NAMED_VALUES: usize = 20;
/// The maximum length, in bytes, of a default.
const LONGEST_DEFAULT: usize = 200;
/// The formats of texts that validators know.
const FORMATS: [&str; 8] = [
    "date",
    "date-time",
    "email",
    "ipv4",
    "ipv6",
    "time",
    "uri",
    "uuid",
];

/// Returns the rules of a schema for its own value.
pub(super) fn of(schema: &Object) -> Object {
    let mut rules = Object::new();
    let mut add = |keyword: &str, value: Value| drop(rules.insert(keyword.to_owned(), value));
    if let Some(kinds) = kinds_of(schema) {
        add("type", kinds);
    }
    for (keyword, value) in schema {
        let is_valid = match &**keyword {
            "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "multipleOf" => value.as_f64().is_some_and(|it| it > 0.0),
            "uniqueItems" => value.is_boolean(),
            "pattern" => value.as_str().is_some_and(is_pattern),
            "format" => value.as_str().is_some_and(|it| FORMATS.contains(&it)),
            "const" => true,
            "default" => value.to_string().len() <= LONGEST_DEFAULT,
            _ => false,
        };
        if is_valid {
            add(keyword, value.clone());
        }
    }
    exclude_limits(schema, &mut rules);
    add_values(schema, &mut rules);
    rules
}

/// Returns the types, and a guess if there are none.
fn kinds_of(schema: &Object) -> Option<Value> {
    let is_kind = |it: &Value| {
        let known = [
            "array", "boolean", "integer", "null", "number", "object", "string",
        ];
        it.as_str().is_some_and(|name| known.contains(&name))
    };
    match schema.get("type") {
        Some(Value::Array(kinds)) => {
            let mut kinds: Vec<_> = kinds.iter().filter(|it| is_kind(it)).cloned().collect();
            kinds.dedup();
            match kinds.len() {
                0 => None,
                1 => kinds.pop(),
                _ => Some(kinds.into()),
            }
        }
        Some(kind) => is_kind(kind).then(|| kind.clone()),
        None => {
            let mut values = list(schema, "enum").peekable();
            values.peek()?;
            values.all(Value::is_string).then(|| "string".into())
        }
    }
}

/// Turns the flags of OpenAPI 3.0 into limits.
fn exclude_limits(schema: &Object, rules: &mut Object) {
    for (flag, limit) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if schema.get(flag) == Some(&Value::Bool(true))
            && let Some(value) = rules.remove(limit)
        {
            rules.insert(flag.to_owned(), value);
        }
    }
}

fn add_values(schema: &Object, rules: &mut Object) {
    let values = values_of(schema);
    if !values.is_empty() && values.len() <= MOST_VALUES {
        rules.insert("enum".into(), values.into());
    }
}

/// Returns the different values that a schema lists.
fn values_of(schema: &Object) -> Vec<Value> {
    let mut seen = HashSet::new();
    let values = list(schema, "enum").filter(|it| seen.insert(*it));
    values.cloned().collect()
}

/// Returns what a description has to say because the rules cannot.
pub(super) fn note_of(schema: &Object) -> Option<String> {
    if is_binary(schema) {
        return Some("The bytes in base64.".to_owned());
    }
    let count = list(schema, "enum").count();
    if count <= MOST_VALUES || values_of(schema).len() <= MOST_VALUES {
        return None;
    }
    let named = list(schema, "enum").take(NAMED_VALUES).map(text_of);
    let named = named.collect::<Vec<_>>().join(", ");
    Some(format!("One of {count} values, such as {named}."))
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns true for bytes: `format: binary` in OpenAPI 3.0, `contentMediaType` in 3.1.
pub(super) fn is_binary(schema: &Object) -> bool {
    let is_text = schema.get("type").is_none_or(|it| it == "string");
    let has_media_type = schema
        .get("contentMediaType")
        .is_some_and(|it| it != "application/json");
    let format = schema.get("format").and_then(Value::as_str);
    is_text && (has_media_type || format == Some("binary"))
}

/// Returns true if the validator knows what the pattern means.
fn is_pattern(pattern: &str) -> bool {
    const LONGEST: usize = 300;
    static KNOWN: LazyLock<Mutex<HashMap<String, bool>>> = LazyLock::new(Mutex::default);
    if pattern.len() > LONGEST {
        return false;
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(is_known) = known.get(pattern) {
        return *is_known;
    }
    let schema = Schema::from_value(json!({"type": "string", "pattern": pattern}));
    let is_valid = schema.compile().is_ok();
    known.insert(pattern.to_owned(), is_valid);
    is_valid
}
