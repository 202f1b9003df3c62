//! The identity of a call: the key that it shares with its repetitions, and the fingerprint of its
//! contents.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Caller, Secret, ToolId, store::hash_of, text};

/// The hashes that identify a call.
#[derive(Clone, Debug)]
pub struct CallIdentity {
    /// A hash of the caller, the tool without its version, and `call_id`.
    pub key: String,
    /// A hash of the call's contents; see [`fingerprint_of`].
    pub fingerprint: String,
    /// The time after the call for which it is remembered, if its contents are its key.
    pub window: Option<Duration>,
}

impl CallIdentity {
    /// Returns the identity of a call, from its [fingerprint](fingerprint_of).
    pub fn new(caller: &Caller, tool: &ToolId, call_id: &str, fingerprint: String) -> Self {
        let mut texts = caller.identity();
        texts.extend([Some(tool.qualified()), Some(call_id)]);
        let key = hash_of(&texts);
        Self {
            key,
            fingerprint,
            window: None,
        }
    }

    /// Returns the identity of a call without an id, which it shares with equal calls. No call with an
    /// id has its key. `fingerprint` is that of an empty id.
    pub fn of_equals(
        caller: &Caller,
        tool: &ToolId,
        fingerprint: String,
        window: Duration,
    ) -> Self {
        let mut texts = caller.identity();
        texts.extend([Some(tool.qualified()), None, Some(&*fingerprint)]);
        Self {
            key: hash_of(&texts),
            fingerprint,
            window: Some(window),
        }
    }
}

/// Returns the SHA-256 of a caller and a user, who own a task.
pub fn owner_of(caller: &Caller, user: Option<&str>) -> String {
    let mut texts = caller.identity();
    texts.push(user);
    hash_of(&texts)
}

/// Returns the SHA-256 of the tool with its version, the user, the canonical JSON of the input, and
/// the credentials that the call carries for its tool.
pub fn fingerprint_of(
    tool: &ToolId,
    user: Option<&str>,
    input: &Value,
    call_id: &str,
    credentials: &[(&str, &Secret)],
) -> String {
    let (tool, json) = (tool.to_string(), canonical(&[input]));
    let mut texts = vec![Some(&*tool), user, Some(&*json)];
    if !credentials.is_empty() {
        // A salt, so that a reader of the store cannot try a list of secrets against all calls at
        // once.
        texts.push(Some(call_id));
    }
    for (id, secret) in credentials {
        texts.extend([Some(*id), Some(secret.expose())]);
    }
    hash_of(&texts)
}

/// Returns the SHA-256 of the canonical JSON of values.
pub fn digest_of(values: &[&Value]) -> String {
    text::hex(&Sha256::digest(canonical(values)))
}

/// Returns values as JSON without spaces, with the fields of objects sorted, and a comma after each
/// item.
///
/// RFC 8785 would convert all numbers to doubles, which makes some large integers equal.
fn canonical(values: &[&Value]) -> String {
    let mut json = Vec::new();
    for value in values {
        write_canonical(value, &mut json);
    }
    String::from_utf8(json).expect("JSON is UTF-8")
}

fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            out.push(b'{');
            for (name, value) in fields {
                write_scalar(name, out);
                out.push(b':');
                write_canonical(value, out);
                out.push(b',');
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write_canonical(item, out);
                out.push(b',');
            }
            out.push(b']');
        }
        scalar => write_scalar(scalar, out),
    }
}

fn write_scalar(scalar: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, scalar).expect("JSON can be written as JSON");
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    fn fingerprint(text: &str) -> String {
        let input = serde_json::from_str(text).unwrap();
        fingerprint_of(&"A.B@1.0.0".parse().unwrap(), None, &input, "c", &[])
    }

    #[test]
    fn the_order_of_fields_and_spaces_do_not_matter() {
        assert_eq!(
            fingerprint(r#"{"a": 1, "b": {"c": [1, 2], "d": "x"}}"#),
            fingerprint(r#"{"b":{"d":"x","c":[1,2]},"a":1}"#)
        );
        let escaped = fingerprint("{\"a\": \"\\u00e9\"}");
        assert_eq!(fingerprint(r#"{"a": "é"}"#), escaped);
    }

    #[test]
    fn all_other_differences_matter() {
        let texts = r#"{} | {"a": null} | {"a": false} | {"a": 0} | {"a": ""} | {"a": []} | {"a": [[]]} | {"a": {}} |
            {"a": [1, 2]} | {"a": [2, 1]} | {"a": "1,2"} | {"a": 9007199254740992} | {"a": 9007199254740993} |
            {"a\":1,\"b": 1} | {"a": 1, "b": 1}"#;
        let texts = texts.split('|');
        let distinct: HashSet<_> = texts.clone().map(fingerprint).collect();
        assert_eq!(distinct.len(), texts.count());
    }

    #[test]
    fn the_fingerprint_has_version_and_user_and_the_key_has_caller_and_tool() {
        let (token, other) = (Secret::from("token"), Secret::from("other"));
        let fingerprint = |tool: &str, user, credentials: &[(&str, &Secret)]| {
            fingerprint_of(&tool.parse().unwrap(), user, &json!({}), "c", credentials)
        };
        let fingerprints = [
            fingerprint("A.B@1.0.0", None, &[]),
            fingerprint("A.B@2.0.0", None, &[]),
            fingerprint("A.B@1.0.0", Some(""), &[]),
            fingerprint("A.B@1.0.0", None, &[("google", &token)]),
            fingerprint("A.B@1.0.0", None, &[("google", &other)]),
            fingerprint("A.B@1.0.0", None, &[("github", &token)]),
        ];
        assert_eq!(HashSet::from(fingerprints).len(), 6);
        let key = |caller: &Caller, tool: &str, call_id: &str| {
            let tool = tool.parse().unwrap();
            CallIdentity::new(caller, &tool, call_id, String::new()).key
        };
        let (anyone, api_key) = (Caller::Anyone, Caller::ApiKey { id: "a".into() });
        let own = key(&anyone, "A.B@1.0.0", "c");
        let keys = [
            own.clone(),
            key(&anyone, "A.C@1.0.0", "c"),
            key(&anyone, "A.B@1.0.0", "d"),
            key(&api_key, "A.B@1.0.0", "c"),
        ];
        assert_eq!(HashSet::from(keys).len(), 4);
        assert_eq!(own, key(&anyone, "A.B@2.0.0", "c"));
        assert_eq!(own.len(), 64);
        // An equal call shares its key with no call that has an id, whichever the client chooses.
        let equal = |caller: &Caller, tool: &str, fingerprint: &str| {
            let (tool, print) = (tool.parse().unwrap(), fingerprint.to_owned());
            CallIdentity::of_equals(caller, &tool, print, Duration::ZERO).key
        };
        let keys = [
            own,
            equal(&anyone, "A.B@1.0.0", "c"),
            equal(&anyone, "A.C@1.0.0", "c"),
            equal(&anyone, "A.B@1.0.0", "d"),
            equal(&api_key, "A.B@1.0.0", "c"),
        ];
        assert_eq!(HashSet::from(keys).len(), 5);
    }
}
