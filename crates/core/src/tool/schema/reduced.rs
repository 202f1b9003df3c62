//! Reduces JSON Schema to formats with few keywords.
//!
//! Clients of some formats reject a list of tools because of one unknown keyword. Other keywords
//! become sentences in the description, which models read; those without a matching sentence are
//! quoted, so that nothing is lost.

pub(super) mod branches;
pub mod keywords;
pub mod sentences;
mod unions;

use std::collections::HashSet;

use crate::json::JsonObject;
use serde_json::{Value, json};

use keywords::{fits, kinds_of, names, object_of, values_of};

/// The parts of a format besides `type` with one value, `description`, `properties`, `items`,
/// `enum` and `required`.
pub struct SchemaFormat {
    /// True if the format has a keyword, with this value, for values of a type.
    pub has_keyword: fn(kind: &str, keyword: &str, value: &Value) -> bool,
    /// True if the format has the values of an `enum` of this type.
    pub has_choice: fn(kind: &str, value: &Value) -> bool,
    /// True if the format has `nullable`, and `anyOf` as the only keyword of a schema, and if its
    /// arrays must have `items`.
    pub is_openapi: bool,
}

impl SchemaFormat {
    /// No other keywords.
    pub const BASIC: Self = Self {
        has_keyword: |_, _, _| false,
        has_choice: |_, _| true,
        is_openapi: false,
    };
}

/// Returns the schema reduced to the keywords of a format.
pub fn reduced(schema: Value, format: &SchemaFormat) -> JsonObject {
    let union = format.is_openapi.then(|| unions::branches_of(&schema));
    match union.flatten() {
        Some(branches) => {
            let branches = branches.into_iter().map(|it| merged(it, format).into());
            JsonObject::from_iter([("anyOf".to_owned(), Value::Array(branches.collect()))])
        }
        None => merged(schema, format),
    }
}

/// Returns the schema reduced to the keywords of a format, with all branches of a union merged into
/// one.
pub fn merged(schema: Value, format: &SchemaFormat) -> JsonObject {
    let kinds = kinds_of(&schema);
    let kind = kinds.iter().copied().find(|kind| *kind != "null");
    let kind = kind.unwrap_or("object");
    let is_nullable = format.is_openapi && kinds.contains(&"null") && kinds.len() == 2;
    let sentence = sentences::of_kinds(&kinds, kind).filter(|_| !is_nullable);
    let mut sentences = Vec::from_iter(sentence);
    let mut rest = object_of(schema);
    branches::merge(&mut rest, kind, &mut sentences);
    rest.shift_remove("type");
    let description = take_description(&mut rest);
    let mut contents = JsonObject::new();
    match kind {
        "object" => take_properties(&mut rest, &mut contents, format),
        "array" => take_items(&mut rest, &mut contents, format),
        _ => take_values(&mut rest, kind, &mut contents, format),
    }
    take_keywords(&mut rest, kind, &mut contents, format);
    if is_nullable {
        contents.insert("nullable".into(), true.into());
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
fn take_properties(rest: &mut JsonObject, contents: &mut JsonObject, format: &SchemaFormat) {
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

fn take_items(rest: &mut JsonObject, contents: &mut JsonObject, format: &SchemaFormat) {
    if rest.get("items").is_some_and(Value::is_object) {
        let items = rest.shift_remove("items").unwrap_or_default();
        contents.insert("items".into(), reduced(items, format).into());
    } else if format.is_openapi {
        contents.insert("items".into(), reduced(json!({}), format).into());
    } else {
        take_values(rest, "array", contents, format);
    }
}

/// Turns `enum` and `const` into `enum`. The values stay in `rest` unless all of them have the type
/// `kind`.
fn take_values(
    rest: &mut JsonObject,
    kind: &str,
    contents: &mut JsonObject,
    format: &SchemaFormat,
) {
    let listed = values_of(rest).unwrap_or_default().iter();
    let mut known = HashSet::new();
    let values = listed.filter(|value| !value.is_null() && known.insert(*value));
    let values: Vec<Value> = values.cloned().collect();
    let has = |value: &Value| fits(value, kind) && (format.has_choice)(kind, value);
    if !values.is_empty() && values.iter().all(has) {
        let is_constant = rest.shift_remove("const").is_some();
        if !is_constant {
            rest.shift_remove("enum");
        }
        contents.insert("enum".into(), values.into());
    }
}

fn take_keywords(
    rest: &mut JsonObject,
    kind: &str,
    contents: &mut JsonObject,
    format: &SchemaFormat,
) {
    let kept = rest.iter();
    let kept = kept.filter(|(keyword, value)| (format.has_keyword)(kind, keyword, value));
    let kept: Vec<_> = kept.map(|(keyword, _)| keyword.clone()).collect();
    for keyword in kept {
        let value = rest.shift_remove(&keyword).unwrap_or_default();
        contents.insert(keyword, value);
    }
}
