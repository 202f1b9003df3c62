//! Translates schemas of draft 7 into draft 2020-12, the dialect of `OpenAPI` 3.1.
//!
//! A `$schema` would say the same, but many readers of documents do not follow it.

use serde_json::Value;

use crate::{payload::JsonObject, tool::schema::each_inner};

/// Replaces the keywords that draft 2020-12 does not have: JSON Schema 2019-09 and 2020-12, release
/// notes.
pub(super) fn translate_draft_7(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    let rest = object.shift_remove("additionalItems");
    if let Some(Value::Array(_)) = object.get("items") {
        let first = object.shift_remove("items").unwrap_or_default();
        object.insert("prefixItems".into(), first);
        // Without a list of items, the keyword has no meaning in draft 7.
        object.extend(rest.map(|rest| ("items".to_owned(), rest)));
    }
    if let Some(Value::Object(dependencies)) = object.shift_remove("dependencies") {
        let (names, schemas): (JsonObject, JsonObject) =
            dependencies.into_iter().partition(|(_, it)| it.is_array());
        for (keyword, values) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
            if !values.is_empty() {
                object.insert(keyword.into(), values.into());
            }
        }
    }
    each_inner(object, &mut |_, inner| translate_draft_7(inner));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_and_dependencies_are_translated_at_every_depth() {
        let mut schema = json!({"properties": {"pair": {
            "items": [{"type": "string"}], "additionalItems": false,
            "dependencies": {"a": ["b"], "c": {"items": [true]}},
        }}});
        translate_draft_7(&mut schema);
        let expected = json!({"properties": {"pair": {
            "prefixItems": [{"type": "string"}], "items": false,
            "dependentRequired": {"a": ["b"]},
            "dependentSchemas": {"c": {"prefixItems": [true]}},
        }}});
        assert_eq!(schema, expected);
    }

    #[test]
    fn other_schemas_stay_the_same() {
        let plain = json!({"items": {"type": "string"}, "properties": {"items": {"enum": [[1]]}}});
        let mut schema = plain.clone();
        schema["additionalItems"] = json!(false);
        translate_draft_7(&mut schema);
        assert_eq!(schema, plain);
    }
}
