//! The documents that can be read.

use std::iter;

use lambda_tools_schema::document::{Document, reference_of};
use serde_json::Value;

use crate::OpenApiError;

/// Returns a document of OpenAPI 3.0, 3.1 or 3.2, in one file.
pub(crate) fn checked(root: Value) -> Result<Document, OpenApiError> {
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
    Ok(Document::new(root))
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
            let error = checked(document).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn references_in_examples_are_data() {
        let document = json!({"openapi": "3.0.3", "examples": [{"$ref": "of another file"}]});
        assert!(checked(document).is_ok());
    }
}
