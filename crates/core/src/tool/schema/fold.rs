//! Folds unions at the root of an input into one object.
//!
//! Anthropic's and OpenAI's APIs accept no union at the root of a tool's input.

use std::iter;

use super::{
    reduced::{branches::combined, keywords::object_of},
    vocabulary::BRANCHES,
};
use crate::json::JsonObject;

/// Merges the properties of a union's branches into the schema, and returns a note that describes
/// the branches to the model; the server still checks them. `None` without unions.
pub fn fold_unions(schema: &mut JsonObject) -> Option<String> {
    let unions = BRANCHES
        .into_iter()
        .filter_map(|keyword| Some((keyword, schema.shift_remove(keyword)?)));
    let unions: Vec<_> = unions.collect();
    if unions.is_empty() {
        return None;
    }
    let properties = schema.shift_remove("properties").map(object_of);
    let mut properties = properties.unwrap_or_default();
    let mut notes = Vec::new();
    for (keyword, branches) in unions {
        let of_branches = branches.as_array().into_iter().flatten();
        let of_branches =
            of_branches.filter_map(|branch| branch["properties"].as_object().cloned());
        properties = combined(keyword, iter::once(properties).chain(of_branches).collect());
        let which = match keyword {
            "allOf" => "all",
            "oneOf" => "exactly one",
            _ => "at least one",
        };
        notes.push(format!(
            "The input must match {which} of these JSON Schemas: {branches}"
        ));
    }
    schema.insert("properties".into(), properties.into());
    // It would forbid the properties of the branches.
    schema.shift_remove("unevaluatedProperties");
    Some(notes.join("\n"))
}
