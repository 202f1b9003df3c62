//! Schemas that every client accepts.
//!
//! A client that rejects one schema rejects the whole list: Anthropic's API accepts no union at the
//! root of an input, and every client reads a schema without `$schema` as draft 2020-12.

use serde_json::{Value, json};

use crate::{
    payload::JsonObject,
    tool::schema::{fold::fold_unions, reduced::keywords::object_of},
};

const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

/// Returns the input schema to publish, and a note for the tool's description if this schema is
/// less specific than the tool's own.
pub(super) fn input(schema: Value, is_draft_7: bool) -> (Value, Option<String>) {
    let mut schema = object_of(schema);
    // A schema with an explicit dialect was written for clients that support that dialect.
    if schema.contains_key("$schema") {
        return (schema.into(), None);
    }
    let note = fold_unions(&mut schema);
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    (with_draft(schema, is_draft_7), note)
}

/// Returns the output schema to publish, which always describes an object.
pub(super) fn output(schema: Value, is_draft_7: bool) -> Value {
    if is_object(&schema) {
        return with_draft(object_of(schema), is_draft_7);
    }
    let mut inner = schema;
    let mut outer = JsonObject::new();
    // References start at the root, so definitions must stay there.
    for keyword in ["$schema", "$defs", "definitions"] {
        let value = inner
            .as_object_mut()
            .and_then(|it| it.shift_remove(keyword));
        outer.extend(value.map(|value| (keyword.to_owned(), value)));
    }
    outer.insert("type".into(), "object".into());
    outer.insert("properties".into(), json!({"result": inner}));
    outer.insert("required".into(), json!(["result"]));
    with_draft(outer, is_draft_7)
}

/// Returns true if a schema describes objects only.
pub(super) fn is_object(schema: &Value) -> bool {
    schema["type"] == "object"
}

fn with_draft(mut schema: JsonObject, is_draft_7: bool) -> Value {
    if is_draft_7 && !schema.contains_key("$schema") {
        schema.shift_insert(0, "$schema".into(), DRAFT_7.into());
    }
    schema.into()
}
