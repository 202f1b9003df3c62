//! Reduces JSON Schema to the few keywords of OpenTool's schemas.
//!
//! These are `type` with one of six values, `description`, `properties`, `items`, `enum` and
//! `required`: published clients reject anything else. Other keywords become sentences in the
//! description, which models read; those without a matching sentence are quoted, so that nothing is
//! lost.

mod forms;
mod keywords;

use crate::{payload::JsonObject, text::counted};
use serde_json::{Value, json};

use keywords::{KINDS, fits, is_bare, kinds_of, listed, names, object_of, values_of};

/// The parameters in a reduced input schema.
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

pub(super) fn take_description(schema: &mut JsonObject) -> String {
    match schema.shift_remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// The schema of `result`: the object that a tool returns, or a wrapper for any other value.
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

/// The schema reduced to OpenTool's keywords.
pub(super) fn reduced(schema: Value) -> JsonObject {
    let kinds = kinds_of(&schema);
    let kind = kinds.iter().copied().find(|kind| *kind != "null");
    let kind = kind.unwrap_or("object");
    let mut sentences = Vec::from_iter(sentence_of_kinds(&kinds, kind));
    let mut rest = object_of(schema);
    forms::merge(&mut rest, kind, &mut sentences);
    rest.shift_remove("type");
    let description = take_description(&mut rest);
    let mut contents = JsonObject::new();
    match kind {
        "object" => take_properties(&mut rest, &mut contents),
        "array" if rest.get("items").is_some_and(Value::is_object) => {
            let items = rest.shift_remove("items").unwrap_or_default();
            contents.insert("items".into(), reduced(items).into());
        }
        _ => take_values(&mut rest, kind, &mut contents),
    }
    add_sentences(rest, &mut sentences);
    let mut schema = described(kind, description, &sentences);
    schema.append(&mut contents);
    schema
}

fn described(kind: &str, mut text: String, sentences: &[String]) -> JsonObject {
    for sentence in sentences {
        if !text.is_empty() {
            let is_ended = text.ends_with(['.', '!', '?', ':']);
            text.push_str(if is_ended { " " } else { ". " });
        }
        text.push_str(sentence);
    }
    let mut schema = JsonObject::from_iter([("type".to_owned(), kind.into())]);
    if !text.is_empty() {
        schema.insert("description".into(), text.into());
    }
    schema
}

/// Names in `required` that have no property stay in `rest`.
fn take_properties(rest: &mut JsonObject, contents: &mut JsonObject) {
    let properties = rest.shift_remove("properties").map(object_of);
    let is_known = |name: &String| properties.as_ref().is_some_and(|it| it.contains_key(name));
    let (required, others): (Vec<_>, Vec<_>) = names(rest.shift_remove("required"))
        .into_iter()
        .partition(is_known);
    if let Some(properties) = properties {
        let each = properties.into_iter();
        let each = each.map(|(name, property)| (name, reduced(property).into()));
        contents.insert("properties".into(), Value::Object(each.collect()));
    }
    if !required.is_empty() {
        contents.insert("required".into(), required.into());
    }
    if !others.is_empty() {
        rest.insert("required".into(), others.into());
    }
}

/// Turns `enum` and `const` into `enum`. The values stay in `rest` unless all of them have the type
/// `kind`.
fn take_values(rest: &mut JsonObject, kind: &str, contents: &mut JsonObject) {
    let listed = values_of(rest).unwrap_or_default().iter();
    let mut values: Vec<Value> = Vec::new();
    for value in listed.filter(|value| !value.is_null()) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    if !values.is_empty() && values.iter().all(|value| fits(value, kind)) {
        let is_constant = rest.shift_remove("const").is_some();
        if !is_constant {
            rest.shift_remove("enum");
        }
        contents.insert("enum".into(), values.into());
    }
}

fn add_sentences(rest: JsonObject, sentences: &mut Vec<String>) {
    let mut others = JsonObject::new();
    for (keyword, value) in rest {
        match (keyword.as_str(), &value) {
            // Irrelevant to callers.
            ("$comment" | "$id" | "$schema" | "readOnly" | "title" | "writeOnly", _)
            | ("additionalProperties" | "unevaluatedProperties", Value::Bool(false))
            | ("items", Value::Bool(true)) => {}
            ("minimum", n) => sentences.push(format!("Must be at least {n}.")),
            ("maximum", n) => sentences.push(format!("Must be at most {n}.")),
            ("minLength", n) => sentences.push(format!(
                "Must have at least {}.",
                counted(n, "character", "characters")
            )),
            ("maxLength", n) => sentences.push(format!(
                "Must have at most {}.",
                counted(n, "character", "characters")
            )),
            ("minItems", n) => sentences.push(format!(
                "Must have at least {}.",
                counted(n, "item", "items")
            )),
            ("maxItems", n) => sentences.push(format!(
                "Must have at most {}.",
                counted(n, "item", "items")
            )),
            ("pattern", Value::String(it)) => {
                sentences.push(format!("Must match the pattern `{it}`."));
            }
            ("format", Value::String(it)) => sentences.push(format!("Format: {it}.")),
            ("default", it) => sentences.push(format!("Default: {it}.")),
            ("examples", Value::Array(all)) => {
                sentences.push(format!("Examples: {}.", listed(all, ", ")));
            }
            ("additionalProperties", it) => match it["type"].as_str() {
                Some(kind) if is_bare(it) => sentences.push(format!("Any other property: {kind}.")),
                _ => sentences.push(format!("Any other property: {it}.")),
            },
            _ => _ = others.insert(keyword, value),
        }
    }
    if !others.is_empty() {
        sentences.push(format!("JSON Schema: {}.", Value::from(others)));
    }
}

fn sentence_of_kinds(kinds: &[&str], kind: &str) -> Option<String> {
    let mut others: Vec<_> = kinds.iter().copied().filter(|it| *it != kind).collect();
    others.sort_by_key(|it| *it == "null");
    match kinds {
        ["null"] => Some("Always null.".into()),
        _ if kinds.len() == KINDS.len() => Some("Any JSON value.".into()),
        _ => (!others.is_empty()).then(|| format!("May also be {}.", others.join(" or "))),
    }
}

#[cfg(test)]
mod tests;
