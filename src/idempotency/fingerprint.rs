//! Which call is the same call, and whether it asks for the same.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Caller, Secret, ToolId};

/// By what a call is recognized.
#[derive(Clone, Debug)]
pub(crate) struct CallIdentity {
    /// A hash of who calls, the tool without its version, and `call_id`.
    pub(crate) key: String,
    /// A hash of what is asked for.
    pub(crate) fingerprint: String,
    /// Who calls.
    pub(crate) owner: String,
}

impl CallIdentity {
    pub(crate) fn new(caller: &Caller, tool: &ToolId, call_id: &str, fingerprint: String) -> Self {
        let mut key = Sha256::new();
        of_caller(&mut key, caller);
        part(&mut key, Some(tool.qualified()));
        part(&mut key, Some(call_id));
        let key = hex(key);
        // Of all users of one signer of JWTs: who signs can make up users.
        let owner = caller.namespace();
        Self {
            key,
            fingerprint,
            owner,
        }
    }
}

fn of_caller(hash: &mut Sha256, caller: &Caller) {
    let (kind, name) = match caller {
        Caller::Anyone => ("anyone", None),
        Caller::ApiKey { id } => ("key", Some(&**id)),
        Caller::Jwt { id, .. } => ("jwt", Some(&**id)),
        Caller::Iam { principal } => ("iam", Some(&**principal)),
        Caller::Authorizer { principal } => ("authorizer", Some(&**principal)),
    };
    part(hash, Some(kind));
    part(hash, name);
    if let Caller::Jwt { subject, .. } = caller {
        part(hash, subject.as_deref());
    }
}

/// SHA-256 of the tool with its version, the user, the canonical JSON of the input, and the
/// credentials that the call brings for its tool.
pub(crate) fn fingerprint_of(
    tool: &ToolId,
    user: Option<&str>,
    input: &Value,
    call_id: &str,
    credentials: &[(&str, &Secret)],
) -> String {
    let mut hash = Sha256::new();
    part(&mut hash, Some(&tool.to_string()));
    part(&mut hash, user);
    canonical(&mut hash, input);
    if !credentials.is_empty() {
        // So that nobody who reads the store can try a list of secrets against all calls at once.
        part(&mut hash, Some(call_id));
    }
    for (id, secret) in credentials {
        part(&mut hash, Some(id));
        part(&mut hash, Some(secret.expose()));
    }
    hex(hash)
}

/// One text among several, which cannot run into the next.
fn part(hash: &mut Sha256, text: Option<&str>) {
    match text {
        None => hash.update([0]),
        Some(text) => {
            hash.update([1]);
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
    }
}

/// The value as JSON without spaces, the fields of objects in the order of their names.
///
/// RFC 8785 would make doubles of all numbers, and two large integers the same.
fn canonical(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            hash.update(b"{");
            for (name, value) in sorted {
                scalar(hash, name);
                hash.update(b":");
                canonical(hash, value);
                hash.update(b",");
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                canonical(hash, item);
                hash.update(b",");
            }
            hash.update(b"]");
        }
        other => scalar(hash, other),
    }
}

fn scalar(hash: &mut Sha256, value: &impl serde::Serialize) {
    serde_json::to_writer(HashWriter(hash), value).expect("JSON can be written as JSON");
}

struct HashWriter<'a>(&'a mut Sha256);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn hex(hash: Sha256) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let bytes = hash.finalize();
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn print(text: &str) -> String {
        let input = serde_json::from_str(text).unwrap();
        fingerprint_of(&"A.B@1.0.0".parse().unwrap(), None, &input, "c", &[])
    }

    #[test]
    fn the_order_of_fields_and_spaces_do_not_matter() {
        assert_eq!(
            print(r#"{"a": 1, "b": {"c": [1, 2], "d": "x"}}"#),
            print(r#"{"b":{"d":"x","c":[1,2]},"a":1}"#)
        );
        assert_eq!(print(r#"{"a": "é"}"#), print("{\"a\": \"\\u00e9\"}"));
    }

    #[test]
    fn everything_else_does() {
        let texts = [
            "{}",
            r#"{"a": null}"#,
            r#"{"a": false}"#,
            r#"{"a": 0}"#,
            r#"{"a": ""}"#,
            r#"{"a": []}"#,
            r#"{"a": [[]]}"#,
            r#"{"a": {}}"#,
            r#"{"a": [1, 2]}"#,
            r#"{"a": [2, 1]}"#,
            r#"{"a": "1,2"}"#,
            r#"{"a": 9007199254740992}"#,
            r#"{"a": 9007199254740993}"#,
            r#"{"a\":1,\"b": 1}"#,
            r#"{"a": 1, "b": 1}"#,
        ];
        let prints: std::collections::HashSet<_> = texts.iter().map(|text| print(text)).collect();
        assert_eq!(prints.len(), texts.len());
    }

    #[test]
    fn version_and_user_belong_to_what_is_asked_for_and_caller_and_tool_to_the_key() {
        let (one, two): (ToolId, ToolId) =
            ("A.B@1.0.0".parse().unwrap(), "A.B@2.0.0".parse().unwrap());
        let input = json!({});
        assert_ne!(
            fingerprint_of(&one, None, &input, "c", &[]),
            fingerprint_of(&two, None, &input, "c", &[])
        );
        assert_ne!(
            fingerprint_of(&one, None, &input, "c", &[]),
            fingerprint_of(&one, Some(""), &input, "c", &[])
        );
        let (token, other) = (Secret::from("token"), Secret::from("other"));
        let prints = [
            fingerprint_of(&one, None, &input, "c", &[]),
            fingerprint_of(&one, None, &input, "c", &[("google", &token)]),
            fingerprint_of(&one, None, &input, "c", &[("google", &other)]),
            fingerprint_of(&one, None, &input, "c", &[("github", &token)]),
        ];
        let different: std::collections::HashSet<_> = prints.iter().collect();
        assert_eq!(different.len(), prints.len());
        let key = |caller: &Caller, tool: &str, call_id: &str| {
            let tool = tool.parse().unwrap();
            CallIdentity::new(caller, &tool, call_id, String::new()).key
        };
        let signed = |id: &str, subject: &str| Caller::Jwt {
            id: id.into(),
            subject: Some(subject.into()),
        };
        let jwt = |subject: &str| signed("S", subject);
        let nobody = Caller::Jwt {
            id: "S".into(),
            subject: None,
        };
        let iam = Caller::Iam {
            principal: "a".into(),
        };
        let authorizer = Caller::Authorizer {
            principal: "a".into(),
        };
        let api_key = Caller::ApiKey { id: "a".into() };
        let keys = [
            key(&Caller::Anyone, "A.B@1.0.0", "c"),
            key(&Caller::Anyone, "A.C@1.0.0", "c"),
            key(&Caller::Anyone, "A.B@1.0.0", "d"),
            key(&jwt("a"), "A.B@1.0.0", "c"),
            key(&jwt("b"), "A.B@1.0.0", "c"),
            key(&nobody, "A.B@1.0.0", "c"),
            key(&api_key, "A.B@1.0.0", "c"),
            key(&signed("T", "a"), "A.B@1.0.0", "c"),
            key(&iam, "A.B@1.0.0", "c"),
            key(&authorizer, "A.B@1.0.0", "c"),
        ];
        let different: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
        assert_eq!(keys[0], key(&Caller::Anyone, "A.B@2.0.0", "c"));
        assert_eq!(keys[0].len(), 64);
    }

    #[test]
    fn the_owner_is_the_caller_and_nothing_else() {
        let owner = |caller: &Caller, tool: &str, call_id: &str| {
            let tool = tool.parse().unwrap();
            CallIdentity::new(caller, &tool, call_id, String::new()).owner
        };
        let jwt = |id: &str, subject: Option<&str>| Caller::Jwt {
            id: id.into(),
            subject: subject.map(Into::into),
        };
        let callers = [
            Caller::Anyone,
            Caller::ApiKey { id: "a".into() },
            Caller::ApiKey { id: "b".into() },
            jwt("a", Some("a")),
            jwt("b", Some("a")),
        ];
        let owners: std::collections::HashSet<_> = callers
            .iter()
            .map(|caller| {
                let one = owner(caller, "A.B@1.0.0", "c");
                assert_eq!(one, owner(caller, "A.C@2.0.0", "d"));
                one
            })
            .collect();
        assert_eq!(owners.len(), callers.len());
        // Who signs can make up users, and must not get more room for it.
        assert!(owners.contains(&owner(&jwt("a", Some("b")), "A.B@1.0.0", "c")));
    }
}
