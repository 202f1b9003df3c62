//! The claims of a JWT: RFC 7519, 4. A `null` is no claim.

use serde_json::{Map, Value};

/// The claims of a token whose signature is valid.
pub(in crate::auth) type Claims = Map<String, Value>;

/// RFC 9068, 2.2.3; some issuers use the second one.
const SCOPES: [&str; 2] = ["scope", "scp"];

/// Returns a time.
pub(in crate::auth) fn number(claims: &Claims, name: &str) -> Result<Option<f64>, &'static str> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let number = value.as_f64().ok_or("the JWT's times are not numbers");
            number.map(Some)
        }
    }
}

/// Returns the name of a user. Numbers that differ may be read as the same one.
pub(in crate::auth) fn name_in(
    claims: &Claims,
    name: &str,
) -> Result<Option<String>, &'static str> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err("the JWT's user is not a text"),
    }
}

/// Returns the scopes of a token, which are separated by spaces or are items of a list.
pub(in crate::auth) fn scopes_in(claims: &Claims) -> Vec<String> {
    let values = SCOPES.into_iter().filter_map(|name| claims.get(name));
    let all = values.filter_map(texts).flatten();
    let split = all.flat_map(|text| text.split(' ').filter(|scope| !scope.is_empty()));
    split.map(str::to_owned).collect()
}

/// Reads a text, or a list of texts.
pub(in crate::auth) fn texts(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        _ => None,
    }
}
