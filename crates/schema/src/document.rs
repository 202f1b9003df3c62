//! A document with schemas in it, such as one of OpenAPI, and what its references lead to.
//!
//! It stays a [`Value`]: a typed model of the format would refuse a whole document for one mistake
//! anywhere in it, and real documents have some.

use std::{collections::HashMap, sync::OnceLock};

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The maximum number of references that lead to each other.
const LONGEST_CHAIN: usize = 32;

/// A document without references to other files, and its anchors once they are needed.
#[derive(Clone, Debug)]
pub struct Document(Value, OnceLock<HashMap<String, String>>);

impl Document {
    /// Creates a document. A reference to another file leads nowhere.
    pub fn new(root: Value) -> Self {
        Self(root, OnceLock::new())
    }

    /// Returns the whole document.
    pub fn root(&self) -> &Value {
        &self.0
    }

    /// Returns the value that a reference names: RFC 6901, in a fragment, or an `$anchor`.
    pub fn at(&self, reference: &str) -> Option<&Value> {
        let pointer = reference.strip_prefix('#')?;
        let pointer = percent_decode_str(pointer).decode_utf8().ok()?;
        if pointer.is_empty() || pointer.starts_with('/') {
            return self.0.pointer(&pointer);
        }
        let anchors = self.1.get_or_init(|| anchors_in(&self.0));
        self.0.pointer(anchors.get(&*pointer)?)
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

/// Returns pointers to the schemas with an `$anchor`.
fn anchors_in(root: &Value) -> HashMap<String, String> {
    let mut anchors = HashMap::new();
    let mut pending = vec![(String::new(), root)];
    while let Some((pointer, value)) = pending.pop() {
        if let Some(name) = value.get("$anchor").and_then(Value::as_str) {
            anchors.insert(name.to_owned(), pointer.clone());
        }
        let fields = value.as_object().into_iter().flatten();
        let fields = fields.map(|(name, it)| (name.replace('~', "~0").replace('/', "~1"), it));
        let items = value.as_array().into_iter().flatten().enumerate();
        let below = fields.chain(items.map(|(index, it)| (index.to_string(), it)));
        pending.extend(below.map(|(name, it)| (format!("{pointer}/{name}"), it)));
    }
    anchors
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
