//! Reduces JSON Schema to formats with few keywords.
//!
//! Clients of some formats reject a list of tools because of one unknown keyword. Other keywords
//! become sentences in the description, which models read; those without a matching sentence are
//! quoted, so that nothing is lost.

pub(super) mod branches;
pub mod keywords;
pub mod sentences;

use std::collections::HashSet;

use crate::json::JsonObject;
use serde_json::Value;

use keywords::{fits, kinds_of, names, object_of, values_of};

/// A format, which has `type` with one value, `description`, `properties`, `items` and `required`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SchemaFormat {
    /// It has `enum`, too.
    OpenTool,
    /// It has no other keyword.
    AgentCore,
}

/// Returns the schema reduced to the keywords of a format, with all branches of a union merged into
/// one.
pub fn reduced(schema: Value, format: SchemaFormat) -> JsonObject {
    let kinds = kinds_of(&schema);
    let kind = kinds.iter().copied().find(|kind| *kind != "null");
    let kind = kind.unwrap_or("object");
    let mut sentences = Vec::from_iter(sentences::of_kinds(&kinds, kind));
    let mut rest = object_of(schema);
    branches::merge(&mut rest, kind, &mut sentences);
    rest.shift_remove("type");
    let description = take_description(&mut rest);
    let mut contents = JsonObject::new();
    match kind {
        "object" => take_properties(&mut rest, &mut contents, format),
        "array" => take_items(&mut rest, &mut contents, format),
        _ if format == SchemaFormat::OpenTool => take_values(&mut rest, kind, &mut contents),
        _ => {}
    }
    sentences::add(rest, &mut sentences);
    let mut schema = described(kind, description, &sentences);
    schema.append(&mut contents);
    schema
}

/// Removes the description.
pub fn take_description(schema: &mut JsonObject) -> String {
    match schema.shift_remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// Returns a schema with a type and, unless it is empty, a description that ends with these
/// sentences.
pub fn described(kind: &str, text: String, sentences: &[String]) -> JsonObject {
    let text = sentences::appended(text, sentences);
    let mut schema = JsonObject::from_iter([("type".to_owned(), kind.into())]);
    if !text.is_empty() {
        schema.insert("description".into(), text.into());
    }
    schema
}

/// Names in `required` that have no property stay in `rest`.
fn take_properties(rest: &mut JsonObject, contents: &mut JsonObject, format: SchemaFormat) {
    let properties = rest.shift_remove("properties").map(object_of);
    let is_known = |name: &String| properties.as_ref().is_some_and(|it| it.contains_key(name));
    let (required, others): (Vec<_>, Vec<_>) = names(rest.shift_remove("required"))
        .into_iter()
        .partition(is_known);
    if let Some(properties) = properties {
        let each = properties.into_iter();
        let each = each.map(|(name, property)| (name, reduced(property, format).into()));
        contents.insert("properties".into(), Value::Object(each.collect()));
    }
    if !required.is_empty() {
        contents.insert("required".into(), required.into());
    }
    if !others.is_empty() {
        rest.insert("required".into(), others.into());
    }
}

fn take_items(rest: &mut JsonObject, contents: &mut JsonObject, format: SchemaFormat) {
    if rest.get("items").is_some_and(Value::is_object) {
        let items = rest.shift_remove("items").unwrap_or_default();
        contents.insert("items".into(), reduced(items, format).into());
    }
}

/// Turns `enum` and `const` into `enum`. The values stay in `rest` unless all of them have the type
/// `kind`.
fn take_values(rest: &mut JsonObject, kind: &str, contents: &mut JsonObject) {
    let listed = values_of(rest).unwrap_or_default().iter();
    let mut known = HashSet::new();
    let values = listed.filter(|value| !value.is_null() && known.insert(*value));
    let values: Vec<Value> = values.cloned().collect();
    if !values.is_empty() && values.iter().all(|value| fits(value, kind)) {
        let is_constant = rest.shift_remove("const").is_some();
        if !is_constant {
            rest.shift_remove("enum");
        }
        contents.insert("enum".into(), values.into());
    }
}
