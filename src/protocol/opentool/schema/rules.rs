//! Keywords that the format does not have, as sentences.

use serde_json::Value;

use super::Object;

/// What is said elsewhere, or says nothing to a caller.
const SILENT: [&str; 18] = [
    "$comment",
    "$id",
    "$schema",
    "allOf",
    "const",
    "description",
    "enum",
    "oneOf",
    "properties",
    "readOnly",
    "required",
    "title",
    "type",
    "writeOnly",
    // Beside `if` and `contains`, with which they are said.
    "else",
    "then",
    "maxContains",
    "minContains",
];

pub(super) fn of(schema: &Object) -> Vec<String> {
    let rules = schema
        .iter()
        .filter_map(|(keyword, value)| rule_of(keyword, value, schema));
    rules.collect()
}

fn rule_of(keyword: &str, value: &Value, schema: &Object) -> Option<String> {
    Some(match (keyword, value) {
        ("minimum", n) => format!("Must be at least {n}."),
        ("maximum", n) => format!("Must be at most {n}."),
        ("exclusiveMinimum", n) => format!("Must be more than {n}."),
        ("exclusiveMaximum", n) => format!("Must be less than {n}."),
        ("multipleOf", n) => format!("Must be a multiple of {n}."),
        ("minLength", n) => format!("Must have at least {n} characters."),
        ("maxLength", n) => format!("Must have at most {n} characters."),
        ("minItems", n) => format!("Must have at least {n} items."),
        ("maxItems", n) => format!("Must have at most {n} items."),
        ("minProperties", n) => format!("Must have at least {n} properties."),
        ("maxProperties", n) => format!("Must have at most {n} properties."),
        ("uniqueItems", Value::Bool(true)) => "Items must differ.".to_owned(),
        ("pattern", Value::String(pattern)) => format!("Must match the pattern `{pattern}`."),
        ("format", Value::String(format)) => format!("Format: {format}."),
        ("default", value) => format!("Default: {value}."),
        ("deprecated", Value::Bool(true)) => "Deprecated.".to_owned(),
        ("examples", Value::Array(examples)) => {
            let examples: Vec<_> = examples.iter().map(Value::to_string).collect();
            format!("Examples: {}.", examples.join(", "))
        }
        ("additionalProperties" | "unevaluatedProperties", Value::Bool(false))
        | ("items", Value::Object(_)) => return None,
        // Told form by form, but for a second union beside the first.
        ("anyOf", _) if !schema.contains_key("oneOf") => return None,
        ("contentEncoding", Value::String(encoding)) => format!("Encoded as {encoding}."),
        ("additionalProperties", Value::Bool(true)) => "May have other properties.".to_owned(),
        ("additionalProperties", other) => {
            format!("Any other property: {}.", text_of(other))
        }
        ("patternProperties", Value::Object(by_pattern)) => {
            let one = |(pattern, schema): (&String, &Value)| {
                format!("Properties that match `{pattern}`: {}.", text_of(schema))
            };
            let all: Vec<_> = by_pattern.iter().map(one).collect();
            all.join(" ")
        }
        ("prefixItems", Value::Array(items)) => {
            let items: Vec<_> = items.iter().map(text_of).collect();
            format!("Items, in this order: {}.", items.join(", "))
        }
        ("not", schema) => format!("Must not be: {}.", text_of(schema)),
        ("if" | "contains", _) => with_company(keyword, schema),
        (keyword, _) if SILENT.contains(&keyword) => return None,
        (keyword, value) => format!("JSON Schema: {{\"{keyword}\":{value}}}."),
    })
}

/// A keyword with those that mean something only beside it.
fn with_company(keyword: &str, schema: &Object) -> String {
    let company: &[&str] = match keyword {
        "if" => &["if", "then", "else"],
        _ => &["contains", "minContains", "maxContains"],
    };
    let together: Object = company
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), schema.get(*name)?.clone())))
        .collect();
    format!("JSON Schema: {}.", Value::Object(together))
}

/// A schema in a sentence: its type where that is all, else the schema itself.
pub(super) fn text_of(schema: &Value) -> String {
    let Value::Object(object) = schema else {
        return if *schema == Value::Bool(false) {
            "nothing".to_owned()
        } else {
            "any JSON value".to_owned()
        };
    };
    if object.is_empty() {
        return "any JSON value".to_owned();
    }
    let says = |name: &String| !["description", "type"].contains(&name.as_str());
    match object.get("type") {
        Some(Value::String(kind)) if !object.keys().any(says) => {
            match object.get("description").and_then(Value::as_str) {
                Some(description) => format!("{kind} ({description})"),
                None => kind.clone(),
            }
        }
        _ => schema.to_string(),
    }
}
