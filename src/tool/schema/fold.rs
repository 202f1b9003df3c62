//! Folds unions at the root of an input into one object.
//!
//! Anthropic's and OpenAI's APIs accept no union at the root of a tool's input.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::vocabulary::FORMS;
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
        add_properties(&mut properties, keyword, &forms);
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

fn add_properties(properties: &mut JsonObject, keyword: &str, forms: &Value) {
    let mut added = HashSet::new();
    for form in forms.as_array().into_iter().flatten() {
        let of_form = form["properties"].as_object().into_iter().flatten();
        for (name, property) in of_form.filter(|it| added.insert(*it)) {
            match properties.get_mut(name) {
                None => {
                    properties.insert(name.clone(), property.clone());
                }
                Some(known) if known == property => {}
                Some(known) => add_form(known, keyword, property),
            }
        }
    }
}

/// A property that differs in several forms has any of their schemas.
fn add_form(known: &mut Value, keyword: &str, property: &Value) {
    let combine = if keyword == "allOf" { "allOf" } else { "anyOf" };
    match known.get_mut(combine).and_then(Value::as_array_mut) {
        Some(forms) => forms.push(property.clone()),
        None => *known = json!({combine: [known.take(), property]}),
    }
}
