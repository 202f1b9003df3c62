//! References in schemas, which APIs accept in one form or not at all.
//!
//! Definitions of this library have none, but those of other MCP servers do: into any place of the
//! schema, or by name.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::{
    payload::JsonObject,
    tool::schema::{each_inner, reduced::sentences},
};

/// The name of a definition in `$defs`, by the reference as it was written.
type Names = HashMap<String, String>;

/// Keywords of references and their targets, and those that mean nothing to a model.
const IGNORED: [&str; 10] = [
    "$anchor",
    "$comment",
    "$dynamicAnchor",
    "$defs",
    "$id",
    "$recursiveAnchor",
    "$schema",
    "$vocabulary",
    "definitions",
    "id",
];
/// The maximum number of schemas that references are replaced with.
const MAX_INLINED: usize = 2000;
/// The depth below which no reference is replaced.
const MAX_DEPTH: usize = 64;

/// Moves the targets of all references to `$defs` of the root, and replaces references elsewhere
/// with a sentence. A reference at the root is replaced with its target.
pub(super) fn hoisted(schema: &Value) -> JsonObject {
    let mut names = Names::new();
    let mut pending = Vec::new();
    let mut rewritten = schema.clone();
    rewrite(&mut rewritten, schema, &mut names, &mut pending);
    let mut defs = JsonObject::new();
    while let Some((name, mut target)) = pending.pop() {
        rewrite(&mut target, schema, &mut names, &mut pending);
        defs.insert(name, target);
    }
    let mut root = match rewritten {
        Value::Object(root) => root,
        _ => JsonObject::new(),
    };
    for _ in 0..=defs.len() {
        let Some(target) = root.shift_remove("$ref").and_then(|it| target(&it, &defs)) else {
            break;
        };
        for (keyword, value) in target {
            root.entry(keyword).or_insert(value);
        }
    }
    defs.sort_keys();
    if uses_references(&root.clone().into()) {
        root.insert("$defs".into(), defs.into());
    }
    root
}

/// The definition that a reference of [`hoisted`] names.
pub(super) fn target(reference: &Value, defs: &JsonObject) -> Option<JsonObject> {
    let name = reference.as_str()?.strip_prefix("#/$defs/")?;
    defs.get(name)?.as_object().cloned()
}

fn uses_references(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => object
            .iter()
            .any(|(name, value)| (name == "$ref" && value.is_string()) || uses_references(value)),
        Value::Array(list) => list.iter().any(uses_references),
        _ => false,
    }
}

fn rewrite(
    schema: &mut Value,
    root: &Value,
    names: &mut Names,
    pending: &mut Vec<(String, Value)>,
) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    object.retain(|keyword, value| {
        // `id` was a keyword in draft 4.
        !IGNORED.contains(&keyword.as_str()) || (keyword == "id" && !value.is_string())
    });
    let reference = ["$ref", "$dynamicRef", "$recursiveRef"]
        .into_iter()
        .find_map(|keyword| object.shift_remove(keyword));
    if let Some(Value::String(reference)) = reference {
        if let Some(name) = name_of(&reference, root, names, pending) {
            object.insert("$ref".into(), format!("#/$defs/{name}").into());
        } else {
            let quoted = format!("JSON Schema: {}.", json!({"$ref": reference}));
            append(object, quoted);
        }
    }
    each_inner(object, &mut |_, inner| rewrite(inner, root, names, pending));
}

/// Appends a sentence to the description.
pub(super) fn append(schema: &mut JsonObject, sentence: String) {
    let text = schema.get("description").and_then(Value::as_str);
    let text = sentences::appended(text.unwrap_or_default().to_owned(), &[sentence]);
    schema.insert("description".into(), text.into());
}

fn name_of(
    reference: &str,
    root: &Value,
    names: &mut Names,
    pending: &mut Vec<(String, Value)>,
) -> Option<String> {
    if let Some(name) = names.get(reference) {
        return Some(name.clone());
    }
    let fragment = reference.strip_prefix('#')?;
    let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
    let target = match &*fragment {
        "" => root,
        pointer if pointer.starts_with('/') => root.pointer(pointer)?,
        anchor => with_anchor(root, anchor)?,
    };
    let last = fragment.rsplit('/').next().unwrap_or_default();
    let is_allowed = |char: &char| char.is_ascii_alphanumeric() || *char == '_';
    let base: String = last.chars().filter(is_allowed).take(40).collect();
    let base = if base.is_empty() { "root".into() } else { base };
    let is_taken = |name: &String| names.values().any(|it| it == name);
    let numbered = (2..).map(|number| format!("{base}_{number}"));
    let name = [base.clone()]
        .into_iter()
        .chain(numbered)
        .find(|name| !is_taken(name))?;
    names.insert(reference.to_owned(), name.clone());
    pending.push((name.clone(), target.clone()));
    Some(name)
}

/// The schema with this `$anchor`, anywhere in the root.
fn with_anchor<'a>(value: &'a Value, anchor: &str) -> Option<&'a Value> {
    match value {
        Value::Object(object) => {
            let names = ["$anchor", "$dynamicAnchor"];
            if names
                .iter()
                .any(|name| object.get(*name).is_some_and(|it| it == anchor))
            {
                return Some(value);
            }
            object.values().find_map(|inner| with_anchor(inner, anchor))
        }
        Value::Array(list) => list.iter().find_map(|inner| with_anchor(inner, anchor)),
        _ => None,
    }
}

/// Replaces all references of [`hoisted`] with their targets. Where a schema contains itself, a
/// sentence takes the place of the second occurrence.
pub(super) fn inlined(mut root: JsonObject) -> JsonObject {
    let Some(Value::Object(defs)) = root.shift_remove("$defs") else {
        return root;
    };
    let mut budget = MAX_INLINED;
    let mut root = Value::Object(root);
    inline(&mut root, &defs, &mut Vec::new(), &mut budget);
    match root {
        Value::Object(root) => root,
        _ => JsonObject::new(),
    }
}

/// `open` has the references around the schema, and `None` for each schema between them.
fn inline(
    schema: &mut Value,
    defs: &JsonObject,
    open: &mut Vec<Option<String>>,
    budget: &mut usize,
) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    *budget = budget.saturating_sub(1);
    let opened = open.len();
    open.push(None);
    while let Some(reference) = object.shift_remove("$ref") {
        let name = reference.as_str().map(str::to_owned);
        let target = target(&reference, defs).unwrap_or_default();
        if open.contains(&name) || open.len() > MAX_DEPTH || *budget == 0 {
            if let Some(kind) = target.get("type") {
                object.entry("type").or_insert(kind.clone());
            }
            let name = name.unwrap_or_default();
            let last = name.rsplit('/').next().unwrap_or_default();
            append(
                object,
                format!("Has the form of `{last}`, as described above."),
            );
            break;
        }
        open.push(name);
        for (keyword, value) in target {
            object.entry(keyword).or_insert(value);
        }
    }
    each_inner(object, &mut |_, inner| inline(inner, defs, open, budget));
    open.truncate(opened);
}
