//! The tools as a Lambda target of an `AgentCore` Gateway lists them.
//!
//! `SchemaDefinition` is a subset of JSON Schema with five keywords. What they do not express becomes
//! text in descriptions.

use serde_json::{Value, json};

use super::{
    definition::ToolDefinition,
    schema::{
        each, modernize,
        reduced::{
            SchemaFormat, add_sentences, appended, fold_unions, list_items, reduced,
            take_description,
        },
        vocabulary::{Role, has_role, object_of},
    },
    toolkit::Toolkit,
};
use crate::{
    json::JsonObject,
    text::{LONGEST_SHOWN, clipped},
};

/// The maximum size of a definition.
const LARGEST_DEFINITION: usize = 256 * 1024;
/// The maximum size of a tool in the list: unions repeat schemas.
const LARGEST_ITEM: usize = 1024 * 1024;
/// The maximum size of the list.
const LARGEST_LIST: usize = 16 * 1024 * 1024;

/// Keywords of the root that apply to the whole input, besides unions.
const OF_THE_WHOLE: [&str; 6] = ["const", "else", "enum", "if", "not", "then"];

/// Returns the newest version of each tool as a `ToolDefinition`. Those whose definitions are too
/// large are left out, with a warning in the log.
pub fn definitions(toolkit: &Toolkit) -> Vec<Value> {
    let mut left = LARGEST_LIST;
    let mut list = Vec::new();
    for entry in toolkit.newest() {
        let definition = ToolDefinition::of(&entry.id, &entry.tool);
        let size = size_of(&definition.input_schema) + definition.description.len();
        let item = (size <= LARGEST_DEFINITION).then(|| item(&definition));
        if let Some(item) = item.filter(|it| size_of(it) <= LARGEST_ITEM.min(left)) {
            left -= size_of(&item);
            list.push(item);
        } else {
            let name = clipped(&definition.name, LONGEST_SHOWN);
            tracing::warn!(target: "lambda_tools::agentcore", "left out the tool {name:?}: its definition is too large");
        }
    }
    list
}

/// Returns the approximate size of a value in bytes: its names and texts, and 20 bytes for each
/// value, of which a request may have as many.
fn size_of(value: &Value) -> usize {
    let of_field = |(name, it): (&String, &Value)| name.len() + size_of(it);
    20 + match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(size_of).sum(),
        Value::Object(object) => object.iter().map(of_field).sum(),
        _ => 0,
    }
}

fn item(definition: &ToolDefinition) -> Value {
    let (schema, notes) = reduced_input(definition.input_schema.clone());
    let text = appended(definition.description.trim().to_owned(), &notes);
    // The API accepts no empty description.
    let text = if text.is_empty() {
        &definition.name
    } else {
        &text
    };
    json!({"name": definition.name, "description": text, "inputSchema": schema})
}

/// Returns the schema of an input with the format's keywords, and notes for the tool's description.
fn reduced_input(mut schema: Value) -> (JsonObject, Vec<String>) {
    modernize(&mut schema);
    // It is irrelevant to callers, and no text must quote it.
    each(&mut schema, &mut |object| {
        object.retain(|keyword, _| !has_role(keyword, &[Role::Identity]));
    });
    let mut schema = object_of(schema);
    let mut notes = Vec::new();
    if let Some(Value::String(text)) = schema.shift_remove("description") {
        notes.push(text);
    }
    notes.extend(fold_unions(&mut schema));
    notes.extend(take_rules(&mut schema));
    schema.shift_insert(0, "type".into(), "object".into());
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".into(), json!({}));
    }
    let mut schema: Value = schema.into();
    each(&mut schema, &mut list_items);
    notes.retain(|note| !note.trim().is_empty());
    let mut schema = reduced(schema, SchemaFormat::AgentCore);
    let text = take_description(&mut schema);
    notes.extend(Some(text).filter(|text| !text.is_empty()));
    (schema, notes)
}

/// Moves the rules for the whole input into a note.
fn take_rules(schema: &mut JsonObject) -> Option<String> {
    let is_rule = |keyword: &&String| OF_THE_WHOLE.contains(&keyword.as_str());
    let keywords: Vec<_> = schema.keys().filter(is_rule).cloned().collect();
    let rules = keywords
        .iter()
        .filter_map(|it| schema.shift_remove_entry(it));
    let mut texts = Vec::new();
    add_sentences(rules.collect(), &mut texts);
    (!texts.is_empty()).then(|| format!("The input: {}", texts.join(" ")))
}
