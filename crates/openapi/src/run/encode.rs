//! Values in paths, queries and forms: OpenAPI 3.1, Style Values, and RFC 3986.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::plan::Encoding;

/// All but the unreserved characters: RFC 3986, 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The characters that `allowReserved` does not keep, because they would end a value or the query.
const NOT_IN_QUERIES: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The characters that a cookie cannot have (RFC 6265, 4.1.1), and `%`, which begins an escape.
const NOT_IN_COOKIES: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b',')
    .add(b';')
    .add(b'\\')
    .add(b'%');

pub(super) fn for_cookie(text: &str) -> String {
    utf8_percent_encode(text, NOT_IN_COOKIES).to_string()
}

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

/// Returns a parameter of the style `simple`, as in a path or a header: RFC 6570, 3.2.2.
pub(super) fn simple(
    value: &Value,
    encoding: Encoding,
    encoded: impl Fn(&str) -> String,
) -> String {
    let texts = match (encoding, value) {
        (Encoding::Json, value) => vec![encoded(&value.to_string())],
        (Encoding::Exploded, Value::Object(fields)) => {
            let fields = fields
                .iter()
                .filter_map(|(name, it)| Some((name, text_of(it)?)));
            fields
                .map(|(name, text)| format!("{}={}", encoded(name), encoded(&text)))
                .collect()
        }
        _ => flat(value).iter().map(|it| encoded(it)).collect(),
    };
    texts.join(",")
}

/// Returns the names and values of a parameter in a query or a form. Separators are literal, and so
/// are reserved characters if that is asked for: RFC 6570, 3.2.3 and 3.2.8.
pub(super) fn pairs(name: &str, value: &Value, encoding: Encoding, reserved: bool) -> Vec<String> {
    let set = if reserved { NOT_IN_QUERIES } else { RESERVED };
    let encoded = |text: &str| utf8_percent_encode(text, set).to_string();
    let pair = |name: &str, text: String| format!("{}={}", percent(name), encoded(&text));
    let joined = |separator: &str| match flat(value) {
        texts if texts.is_empty() => Vec::new(),
        texts => {
            let texts: Vec<_> = texts.iter().map(|it| encoded(it)).collect();
            vec![format!("{}={}", percent(name), texts.join(separator))]
        }
    };
    let each = |name: &str, value: &Value| match value {
        Value::Array(items) => items
            .iter()
            .filter_map(text_of)
            .map(|it| pair(name, it))
            .collect(),
        one => text_of(one)
            .map(|it| pair(name, it))
            .into_iter()
            .collect::<Vec<_>>(),
    };
    match (encoding, value) {
        (_, Value::Null) => Vec::new(),
        (Encoding::Json, value) => vec![pair(name, value.to_string())],
        (Encoding::Comma, _) => joined(","),
        (Encoding::Space, _) => joined("%20"),
        (Encoding::Pipe, _) => joined("%7C"),
        (Encoding::Deep, Value::Object(_) | Value::Array(_)) => deep(name, value)
            .into_iter()
            .map(|(name, text)| pair(&name, text))
            .collect(),
        (Encoding::Usual, Value::Object(fields)) => fields
            .iter()
            .flat_map(|(name, it)| each(name, it))
            .collect(),
        (_, value) => each(name, value),
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
            (&list, Encoding::Comma, "color=blue,black"),
            (&list, Encoding::Space, "color=blue%20black"),
            (&list, Encoding::Pipe, "color=blue%7Cblack"),
            (
                &list,
                Encoding::Json,
                "color=%5B%22blue%22%2C%22black%22%5D",
            ),
            (&object, Encoding::Usual, "R=100&G=1&G=2"),
            (
                &object,
                Encoding::Deep,
                "color%5BR%5D=100&color%5BG%5D%5B%5D=1&color%5BG%5D%5B%5D=2",
            ),
            (&json!(null), Encoding::Usual, ""),
            (&json!("a b&c"), Encoding::Usual, "color=a%20b%26c"),
            (&json!([]), Encoding::Comma, ""),
        ] {
            assert_eq!(pairs("color", value, encoding, false).join("&"), expected);
        }
    }
}
