//! OpenTool's schemas: the parameters of a function, and the object that it returns.
//!
//! Its schemas have `type` with one of six values, `description`, `properties`, `items`, `enum` and
//! `required`: published clients reject anything else. Everything else becomes sentences.

use crate::{
    json::JsonObject,
    tool::schema::{
        reduced::{self, SchemaFormat, described, take_description},
        vocabulary::{kinds_of, names, object_of},
    },
};
use serde_json::{Value, json};

/// Returns the schema reduced to OpenTool's keywords.
pub(super) fn reduced(schema: Value) -> JsonObject {
    reduced::reduced(schema, SchemaFormat::OpenTool)
}

/// Returns the parameters in a reduced input schema.
pub(super) fn parameters(mut input: JsonObject) -> Vec<Value> {
    let required = names(input.shift_remove("required"));
    let parameter = |(name, schema)| {
        let mut schema = object_of(schema);
        let description = take_description(&mut schema);
        let required = required.contains(&name);
        json!({"name": name, "description": description, "schema": schema, "required": required})
    };
    let properties = input.shift_remove("properties").map(object_of);
    properties.into_iter().flatten().map(parameter).collect()
}

/// Returns the schema of `result`: the object that a tool returns, or a wrapper for any other
/// value.
pub(super) fn result(output: Value) -> JsonObject {
    let kinds = kinds_of(&output);
    let mut value = reduced(output);
    let (may_be_object, may_be_null) = (kinds.contains(&"object"), kinds.contains(&"null"));
    if kinds.iter().all(|kind| ["object", "null"].contains(kind)) {
        if may_be_null {
            // `null` is sent as an empty object.
            value.shift_remove("required");
        }
        return value;
    }
    let unwrapped = "If the value is an object, it is returned as the result itself, not wrapped \
                     in `value`.";
    let sentences = Vec::from_iter(may_be_object.then(|| unwrapped.to_owned()));
    let mut result = described("object", take_description(&mut value.clone()), &sentences);
    result.insert("properties".into(), json!({"value": value}));
    if !may_be_null && !may_be_object {
        result.insert("required".into(), json!(["value"]));
    }
    result
}

#[cfg(test)]
mod tests;
