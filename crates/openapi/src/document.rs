//! An OpenAPI document, and what its references lead to.
//!
//! It stays a [`Value`]: a typed model of the format would refuse a whole document for one mistake
//! anywhere in it, and real documents have some.

use std::{collections::HashMap, iter, sync::OnceLock};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::OpenApiError;

/// The maximum number of references that lead to each other.
const LONGEST_CHAIN: usize = 32;

/// A document of OpenAPI 3.0, 3.1 or 3.2, without references to other files, and its anchors once they
/// are needed.
#[derive(Clone, Debug)]
pub(crate) struct Document(Value, OnceLock<HashMap<String, String>>);

impl Document {
    pub(crate) fn new(root: Value) -> Result<Self, OpenApiError> {
        if root.get("swagger").is_some() {
            return Err(OpenApiError::new(
                "this is a Swagger 2.0 document; convert it to OpenAPI 3 first, for example with \
                 `npx swagger2openapi`",
            ));
        }
        // In YAML without quotes, 3.1 is a number.
        let version = root.get("openapi").map(ToString::to_string);
        if !version.is_some_and(|it| it.trim_start_matches('"').starts_with("3.")) {
            return Err(OpenApiError::new(
                "this is not an OpenAPI 3 document: it has no field `openapi` that begins with 3",
            ));
        }
        let foreign = |it: &&str| !it.starts_with('#');
        if let Some(reference) = values_in(&root).filter_map(reference_of).find(foreign) {
            return Err(OpenApiError::new(format!(
                "the document refers to another file ({reference}); make one file of it first, \
                 for example with `npx @redocly/cli bundle`"
            )));
        }
        Ok(Self(root, OnceLock::new()))
    }

    pub(crate) fn root(&self) -> &Value {
        &self.0
    }

    /// Returns the title of the API.
    pub(crate) fn title(&self) -> &str {
        self.0["info"]["title"].as_str().unwrap_or_default()
    }

    /// Returns the value that a reference names: RFC 6901, in a fragment, or an `$anchor`.
    pub(crate) fn at(&self, reference: &str) -> Option<&Value> {
        let pointer = reference.strip_prefix('#')?;
        let pointer = percent_decode_str(pointer).decode_utf8().ok()?;
        if pointer.is_empty() || pointer.starts_with('/') {
            return self.0.pointer(&pointer);
        }
        let anchors = self.1.get_or_init(|| anchors_in(&self.0));
        self.0.pointer(anchors.get(&*pointer)?)
    }

    /// Follows a value's references. `None` if one leads nowhere.
    pub(crate) fn resolve<'a>(&'a self, value: &'a Value) -> Option<&'a Value> {
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
pub(crate) fn reference_of(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()
}

/// Returns the values of a document, at any depth, outside of examples and extensions.
fn values_in(root: &Value) -> impl Iterator<Item = &Value> {
    let is_data = |name: &str| {
        matches!(name, "default" | "enum" | "example" | "examples") || name.starts_with("x-")
    };
    let mut pending = vec![root];
    iter::from_fn(move || {
        let value = pending.pop()?;
        let fields = value.as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| !is_data(name));
        pending.extend(fields.map(|(_, it)| it));
        pending.extend(value.as_array().into_iter().flatten());
        Some(value)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_read_says_what_to_do() {
        let parts = json!({"openapi": "3.1.0", "paths": {"/a": {"$ref": "a.yaml"}}});
        for (document, hint) in [
            (json!({"swagger": "2.0"}), "swagger2openapi"),
            (json!({"openapi": "4.0.0"}), "not an OpenAPI 3 document"),
            (json!([]), "not an OpenAPI 3 document"),
            (parts, "bundle"),
        ] {
            let error = Document::new(document).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn references_are_pointers_in_fragments() {
        let document = json!({"openapi": "3.0.3", "paths": {"/a/{b}": {"get": 1}},
            "loop": {"$ref": "#/loop"}, "examples": [{"$ref": "of another file"}]});
        let document = Document::new(document).unwrap();
        assert_eq!(document.at("#/paths/~1a~1%7Bb%7D/get"), Some(&json!(1)));
        assert_eq!(document.at("#/paths/none"), None);
        assert_eq!(document.resolve(&json!({"$ref": "#/loop"})), None);
    }
}
