//! Values in paths, queries and forms: OpenAPI 3.1, Style Values, and RFC 3986.

use std::slice;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::plan::Encoding;

/// All but the unreserved characters: RFC 3986, 2.3.
const RESERVED: &AsciiSet = &all_but(b"-._~");

/// The characters that `allowReserved` does not keep, because they would end a value or the query.
const NOT_IN_QUERIES: &AsciiSet = &all_but(b"!$'()*,-./:;=?@[]_~");

/// The characters that a cookie cannot have (RFC 6265, 4.1.1), and `%`, which begins an escape.
const NOT_IN_COOKIES: &AsciiSet = &all_but(b"!#$&'()*+-./:<=>?@[]^_`{|}~");

/// Returns the characters that are neither letters, digits nor these.
const fn all_but(kept: &[u8]) -> AsciiSet {
    let mut set = NON_ALPHANUMERIC.remove(kept[0]);
    let mut at = 1;
    while at < kept.len() {
        set = set.remove(kept[at]);
        at += 1;
    }
    set
}

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
            let fields = fields.iter();
            let pairs = fields.filter_map(|(name, it)| Some([name.clone(), text_of(it)?]));
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
            let pair = |(name, it): (&String, &Value)| {
                Some(format!("{}={}", encoded(name), encoded(&text_of(it)?)))
            };
            fields.iter().filter_map(pair).collect()
        }
        _ => flat(value).iter().map(|it| encoded(it)).collect(),
    };
    texts.join(",")
}

/// Returns the names and values of a parameter in a query or a form. Separators are literal, and so
/// are reserved characters if that is asked for: RFC 6570, 3.2.3 and 3.2.8.
pub(super) fn pairs(name: &str, value: &Value, encoding: Encoding, reserved: bool) -> Vec<String> {
    let set = if reserved { NOT_IN_QUERIES } else { RESERVED };
    let encoded = |it: &String| utf8_percent_encode(it, set).to_string();
    let joined = |separator: &str| {
        let texts: Vec<_> = flat(value).iter().map(encoded).collect();
        let pair = format!("{}={}", percent(name), texts.join(separator));
        Vec::from_iter((!texts.is_empty()).then_some(pair))
    };
    let named = match (encoding, value) {
        (_, Value::Null) => Vec::new(),
        (Encoding::Comma, _) => return joined(","),
        (Encoding::Space, _) => return joined("%20"),
        (Encoding::Pipe, _) => return joined("%7C"),
        (Encoding::Json, value) => vec![(name.to_owned(), value.to_string())],
        (Encoding::Deep, value) => deep(name, value),
        (Encoding::Usual, Value::Object(fields)) => {
            let fields = fields.iter();
            fields.flat_map(|(name, it)| repeated(name, it)).collect()
        }
        (_, value) => repeated(name, value),
    };
    let pair = |(name, text): &(String, String)| format!("{}={}", percent(name), encoded(text));
    named.iter().map(pair).collect()
}

/// Returns the items of a list, or the only value.
pub(super) fn items_of(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        one => slice::from_ref(one),
    }
}

/// Returns `name=1` for each item of a list.
fn repeated(name: &str, value: &Value) -> Vec<(String, String)> {
    let texts = items_of(value).iter().filter_map(text_of);
    texts.map(|text| (name.to_owned(), text)).collect()
}

/// Returns `name[a]=1` for an object, at any depth.
fn deep(name: &str, value: &Value) -> Vec<(String, String)> {
    let fields = value.as_object().into_iter().flatten();
    let fields = fields.map(|(inner, it)| (format!("{name}[{inner}]"), it));
    let items = value.as_array().into_iter().flatten();
    let inner = fields.chain(items.map(|it| (format!("{name}[]"), it)));
    match value {
        Value::Object(_) | Value::Array(_) => {
            inner.flat_map(|(name, it)| deep(&name, it)).collect()
        }
        one => repeated(name, one),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn styles_are_those_of_the_specification() {
        let list = json!(["blue", "black"]);
        let nested = "color%5BG%5D%5B%5D=1&color%5BG%5D%5B%5D=2";
        for (value, encoding, expected) in [
            (&list, Encoding::Space, "color=blue%20black"),
            (&list, Encoding::Pipe, "color=blue%7Cblack"),
            (&json!({"G": [1, 2]}), Encoding::Deep, nested),
            (&json!(null), Encoding::Usual, ""),
            (&json!("a b&c"), Encoding::Usual, "color=a%20b%26c"),
            (&json!([]), Encoding::Comma, ""),
        ] {
            assert_eq!(pairs("color", value, encoding, false).join("&"), expected);
        }
    }
}
