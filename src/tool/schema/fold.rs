//! Folds unions at the root of an input into one object.
//!
//! Anthropic's and OpenAI's APIs accept no union at the root of a tool's input.

use std::iter;

use serde_json::{Map, Value};

use super::{reduced::forms::combined, vocabulary::FORMS};
use crate::payload::JsonObject;

/// Merges the properties of a union's forms into the schema, and returns a note that describes the
/// forms to the model; the server still checks them. `None` without unions.
pub(crate) fn fold_unions(schema: &mut JsonObject) -> Option<String> {
    let unions = FORMS
        .into_iter()
        .filter_map(|keyword| Some((keyword, schema.shift_remove(keyword)?)));
    let unions: Vec<_> = unions.collect();
    if unions.is_empty() {
        return None;
    }
    let mut properties = match schema.shift_remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let mut notes = Vec::new();
    for (keyword, forms) in unions {
        let of_forms = forms.as_array().into_iter().flatten();
        let of_forms = of_forms.filter_map(|form| form["properties"].as_object().cloned());
        properties = combined(keyword, iter::once(properties).chain(of_forms).collect());
        let which = match keyword {
            "allOf" => "all",
            "oneOf" => "exactly one",
            _ => "at least one",
        };
        notes.push(format!(
            "The input must match {which} of these JSON Schemas: {forms}"
        ));
    }
    schema.insert("properties".into(), properties.into());
    // It would forbid the properties of the forms.
    schema.shift_remove("unevaluatedProperties");
    Some(notes.join("\n"))
}
