//! A document with schemas in it, such as one of OpenAPI, and what its references lead to.
//!
//! It stays a [`Value`]: a typed model of the format would refuse a whole document for one mistake
//! anywhere in it, and real documents have some.

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The maximum number of references that lead to each other.
const LONGEST_CHAIN: usize = 32;

/// A document, in which references are pointers.
#[derive(Clone, Debug)]
pub struct Document(Value);

impl Document {
    /// Creates a document. A reference to another file or to an `$anchor` leads nowhere.
    pub fn new(root: Value) -> Self {
        Self(root)
    }

    /// Returns the whole document.
    pub fn root(&self) -> &Value {
        &self.0
    }

    /// Returns the value that a reference names: RFC 6901, in a fragment.
    pub fn at(&self, reference: &str) -> Option<&Value> {
        let pointer = reference.strip_prefix('#')?;
        let pointer = percent_decode_str(pointer).decode_utf8().ok()?;
        self.0.pointer(&pointer)
    }

    /// Follows a value's references. `None` if one leads nowhere.
    pub fn resolve<'a>(&'a self, value: &'a Value) -> Option<&'a Value> {
        let mut value = value;
        for _ in 0..LONGEST_CHAIN {
            match reference_of(value) {
                Some(reference) => value = self.at(reference)?,
                None => return Some(value),
            }
        }
        None
    }
}

/// Returns the target of a reference object.
pub fn reference_of(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_pointers_in_fragments() {
        let document = json!({"paths": {"/a/{b}": {"get": 1}},
            "loop": {"$ref": "#/loop"}});
        let document = Document::new(document);
        assert_eq!(document.at("#/paths/~1a~1%7Bb%7D/get"), Some(&json!(1)));
        assert_eq!(document.at("#/paths/none"), None);
        assert_eq!(document.resolve(&json!({"$ref": "#/loop"})), None);
    }
}
