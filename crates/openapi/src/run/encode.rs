//! Values in paths, queries and forms: OpenAPI 3.1, Style Values, and RFC 3986.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::plan::Encoding;

/// All but the unreserved characters: RFC 3986, 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

pub(super) fn percent(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Returns a value as text, lists and objects as JSON. `None` for `null`, which has no text.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Returns the items of a list, or the names and values of an object, as texts.
pub(super) fn flat(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(text_of).collect(),
        Value::Object(fields) => {
            let pairs = fields
                .iter()
                .filter_map(|(name, it)| Some([name.clone(), text_of(it)?]));
            pairs.flatten().collect()
        }
        one => text_of(one).into_iter().collect(),
    }
}

/// Returns the names and values of a parameter in a query or a form.
pub(super) fn pairs(name: &str, value: &Value, encoding: Encoding) -> Vec<(String, String)> {
    let one = |text: String| vec![(name.to_owned(), text)];
    let joined = |separator: &str| match flat(value) {
        texts if texts.is_empty() => Vec::new(),
        texts => one(texts.join(separator)),
    };
    match (encoding, value) {
        (_, Value::Null) => Vec::new(),
        (Encoding::Json, value) => one(value.to_string()),
        (Encoding::Comma, _) => joined(","),
        (Encoding::Space, _) => joined(" "),
        (Encoding::Pipe, _) => joined("|"),
        (Encoding::Deep, Value::Object(_) | Value::Array(_)) => deep(name, value),
        (Encoding::Usual, Value::Array(items)) => {
            let texts = items.iter().filter_map(text_of);
            texts.map(|text| (name.to_owned(), text)).collect()
        }
        (Encoding::Usual, Value::Object(fields)) => {
            let pairs = fields
                .iter()
                .filter_map(|(name, it)| Some((name.clone(), text_of(it)?)));
            pairs.collect()
        }
        (_, value) => text_of(value).map(one).unwrap_or_default(),
    }
}

/// Returns `name[a]=1` for an object, at any depth.
fn deep(name: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(fields) => {
            let inner = fields
                .iter()
                .flat_map(|(inner, it)| deep(&format!("{name}[{inner}]"), it));
            inner.collect()
        }
        Value::Array(items) => items
            .iter()
            .flat_map(|it| deep(&format!("{name}[]"), it))
            .collect(),
        one => text_of(one)
            .map(|text| (name.to_owned(), text))
            .into_iter()
            .collect(),
    }
}

/// Returns the pairs as a query or a form.
pub(super) fn query(pairs: &[(String, String)]) -> String {
    let encoded = pairs
        .iter()
        .map(|(name, text)| format!("{}={}", percent(name), percent(text)));
    encoded.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn styles_are_those_of_the_specification() {
        let list = json!(["blue", "black"]);
        let object = json!({"R": 100, "G": [1, 2]});
        for (value, encoding, expected) in [
            (&list, Encoding::Usual, "color=blue&color=black"),
            (&list, Encoding::Comma, "color=blue%2Cblack"),
            (&list, Encoding::Space, "color=blue%20black"),
            (&list, Encoding::Pipe, "color=blue%7Cblack"),
            (
                &list,
                Encoding::Json,
                "color=%5B%22blue%22%2C%22black%22%5D",
            ),
            (&object, Encoding::Usual, "R=100&G=%5B1%2C2%5D"),
            (
                &object,
                Encoding::Deep,
                "color%5BR%5D=100&color%5BG%5D%5B%5D=1&color%5BG%5D%5B%5D=2",
            ),
            (&json!(null), Encoding::Usual, ""),
            (&json!("a b&c"), Encoding::Usual, "color=a%20b%26c"),
            (&json!([]), Encoding::Comma, ""),
        ] {
            assert_eq!(query(&pairs("color", value, encoding)), expected);
        }
    }
}
