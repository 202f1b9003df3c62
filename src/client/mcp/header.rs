//! Headers that repeat parts of a modern request: 2026-07-28, Streamable HTTP, Request Metadata.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

const ANNOTATION: &str = "x-mcp-header";

/// A header's value; as base64 if the text is not plain ASCII.
pub(super) fn encoded(text: &str) -> HeaderValue {
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    plain(text).filter(|_| !looks_encoded).unwrap_or_else(|| {
        let text = format!("=?base64?{}?=", STANDARD.encode(text));
        HeaderValue::try_from(text).expect("base64 is plain ASCII")
    })
}

/// The text as it is, if a header can carry it.
pub(super) fn plain(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    is_plain.then(|| HeaderValue::try_from(text).ok()).flatten()
}

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArgumentHeader {
    name: HeaderName,
    /// The names of the properties that lead to the argument.
    path: Vec<String>,
}

/// The headers for these arguments. Absent and `null` arguments have none.
pub(super) fn argument_headers(headers: &[ArgumentHeader], arguments: &Value) -> HeaderMap {
    let value = |header: &ArgumentHeader| {
        let mut path = header.path.iter();
        let value = path.try_fold(arguments, |value, name| value.get(name))?;
        let value = match value {
            Value::String(text) => encoded(text),
            Value::Bool(_) | Value::Number(_) => encoded(&value.to_string()),
            _ => return None,
        };
        Some((header.name.clone(), value))
    };
    headers.iter().filter_map(value).collect()
}

/// A tool's schema violates the rules for these headers; the tool cannot be called.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidAnnotation;

/// The headers that a tool's input schema requires.
pub(super) fn annotated(schema: &Value) -> Result<Vec<ArgumentHeader>, InvalidAnnotation> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    Ok(found)
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<ArgumentHeader>,
) -> Result<(), InvalidAnnotation> {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match (keyword.as_str(), value) {
            (ANNOTATION, _) => found.push(header_at(schema, path, found)?),
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    collect(property, path, found)?;
                    path.pop();
                }
            }
            // Data, not schemas.
            ("const" | "default" | "enum" | "examples", _) => {}
            _ if is_annotated(value) => return Err(InvalidAnnotation),
            _ => {}
        }
    }
    Ok(())
}

fn header_at(
    schema: &Value,
    path: &[String],
    found: &[ArgumentHeader],
) -> Result<ArgumentHeader, InvalidAnnotation> {
    let suffix = schema[ANNOTATION].as_str().filter(|it| !it.is_empty());
    let name = suffix.and_then(|it| HeaderName::try_from(format!("mcp-param-{it}")).ok());
    let name = name.ok_or(InvalidAnnotation)?;
    let kind = &schema["type"];
    let kinds = kind
        .as_array()
        .map_or(std::slice::from_ref(kind), Vec::as_slice);
    let allowed = ["boolean", "integer", "null", "string"];
    let is_primitive = kinds
        .iter()
        .all(|kind| kind.as_str().is_some_and(|it| allowed.contains(&it)));
    if path.is_empty() || !is_primitive || found.iter().any(|it| it.name == name) {
        return Err(InvalidAnnotation);
    }
    let path = path.to_vec();
    Ok(ArgumentHeader { name, path })
}

fn is_annotated(value: &Value) -> bool {
    match value {
        Value::Object(object) => {
            object.contains_key(ANNOTATION) || object.values().any(is_annotated)
        }
        Value::Array(items) => items.iter().any(is_annotated),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The specification's examples.
    #[test]
    fn text_that_is_not_plain_is_sent_as_base64() {
        for (text, expected) in [
            ("us-west1", "us-west1"),
            ("two words", "two words"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(text), expected, "{text:?}");
        }
    }

    #[test]
    fn annotated_arguments_are_repeated_in_headers() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "x-mcp-header": {"type": "string", "default": {"x-mcp-header": "data"}},
            "options": {"type": "object", "properties": {
                "limit": {"type": ["integer", "null"], "x-mcp-header": "Limit"},
                "dry": {"type": "boolean", "x-mcp-header": "Dry"}}}}});
        let headers = annotated(&schema).unwrap();
        let arguments = json!({"region": "é", "options": {"limit": 7, "dry": true}});
        let sent = argument_headers(&headers, &arguments);
        assert_eq!(sent["mcp-param-region"], "=?base64?w6k=?=");
        assert_eq!(
            (&sent["mcp-param-limit"], &sent["mcp-param-dry"]),
            (&"7".parse().unwrap(), &"true".parse().unwrap())
        );
        for arguments in [json!({"options": {"limit": null}}), json!({}), json!(5)] {
            assert!(argument_headers(&headers, &arguments).is_empty());
        }
    }

    #[test]
    fn invalid_annotations_are_found() {
        let property = |schema: Value| json!({"properties": {"a": schema}});
        for invalid in [
            property(json!({"type": "number", "x-mcp-header": "A"})),
            property(json!({"x-mcp-header": "A"})),
            property(json!({"type": "string", "x-mcp-header": ""})),
            property(json!({"type": "string", "x-mcp-header": "a b"})),
            property(json!({"type": "string", "x-mcp-header": "a\r\nb"})),
            property(json!({"type": "string", "x-mcp-header": 5})),
            property(json!({"items": {"type": "string", "x-mcp-header": "A"}})),
            property(json!({"anyOf": [{"type": "string", "x-mcp-header": "A"}]})),
            json!({"type": "string", "x-mcp-header": "A"}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"},
                "b": {"type": "string", "x-mcp-header": "a"}}}),
        ] {
            assert_eq!(annotated(&invalid), Err(InvalidAnnotation), "{invalid}");
        }
    }
}
