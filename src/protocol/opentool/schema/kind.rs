//! Which types a schema allows.

use serde_json::Value;

use super::{Object, union};

pub(super) const ALL: [&str; 6] = ["boolean", "integer", "number", "string", "array", "object"];

/// The type that is written; `None` where there is none, or only `null`.
pub(super) fn kind_of(schema: &Object) -> Option<&'static str> {
    let named = kinds_of(schema).into_iter().find(|it| *it != "null");
    let by_value = || {
        let listed = schema.get("enum").and_then(Value::as_array);
        let mut values = schema
            .get("const")
            .into_iter()
            .chain(listed.into_iter().flatten());
        values.find_map(kind_of_value)
    };
    let by_keyword = || {
        const KEYWORDS: [(&str, &[&str]); 4] = [
            (
                "object",
                &[
                    "properties",
                    "additionalProperties",
                    "patternProperties",
                    "required",
                ],
            ),
            ("array", &["items", "prefixItems", "minItems", "maxItems"]),
            ("string", &["pattern", "minLength", "maxLength", "format"]),
            (
                "number",
                &[
                    "minimum",
                    "maximum",
                    "exclusiveMinimum",
                    "exclusiveMaximum",
                    "multipleOf",
                ],
            ),
        ];
        let has = |names: &[&str]| names.iter().any(|name| schema.contains_key(*name));
        KEYWORDS
            .into_iter()
            .find(|(_, names)| has(names))
            .map(|(kind, _)| kind)
    };
    let by_part = || {
        let parts = schema
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let forms = union::forms_of(schema).into_iter().flatten();
        let mut kinds = parts.chain(forms).filter_map(|it| kind_of(it.as_object()?));
        kinds.next()
    };
    named.or_else(by_value).or_else(by_keyword).or_else(by_part)
}

fn kind_of_value(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    })
}

pub(super) fn fits(value: &Value, kind: &str) -> bool {
    let of_value = kind_of_value(value);
    of_value == Some(kind) || (of_value, kind) == (Some("integer"), "number")
}

/// The types that a schema names, known ones only.
pub(super) fn kinds_of(schema: &Object) -> Vec<&'static str> {
    const KNOWN: [&str; 7] = [
        "boolean", "integer", "number", "string", "array", "object", "null",
    ];
    let known = |name: &Value| KNOWN.into_iter().find(|known| name == known);
    match schema.get("type") {
        Some(Value::Array(several)) => several.iter().filter_map(known).collect(),
        Some(one) => known(one).into_iter().collect(),
        None => Vec::new(),
    }
}
