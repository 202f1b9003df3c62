//! Reduces JSON Schema to formats with few keywords.
//!
//! Clients of some formats reject a list of tools because of one unknown keyword. Other keywords
//! become sentences in the description, which models read; those without a matching sentence are
//! quoted, so that nothing is lost.
//!
//! Enums with doc comments, enums with data in their variants, and `Option`s have `oneOf`, `anyOf` or
//! `allOf`. A client sends only the properties and choices that it sees, so the result lists those of
//! all branches.

use std::{collections::HashSet, iter};

use serde_json::{Value, json};

use super::vocabulary::{
    BRANCHES, KINDS, Role, constants_in, fits, has_role, is_bare, kinds_of, listed, names,
    object_of, values_of,
};
use crate::{
    JsonObject, is_type,
    text::{has_count, sentence},
};

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
///
/// ```
/// use lambda_tools_schema::reduced::{SchemaFormat, reduced};
/// use serde_json::json;
///
/// let schema = json!({"type": ["integer", "null"], "minimum": 1, "description": "A page."});
/// let text = "A page. May also be null. Must be at least 1.";
/// let expected = json!({"type": "integer", "description": text});
/// assert_eq!(json!(reduced(schema, SchemaFormat::AgentCore)), expected);
/// ```
pub fn reduced(schema: Value, format: SchemaFormat) -> JsonObject {
    let kinds = kinds_of(&schema);
    let kind = kinds.iter().copied().find(|kind| *kind != "null");
    let kind = kind.unwrap_or("object");
    let mut sentences = Vec::from_iter(sentence_of_kinds(&kinds, kind));
    let mut rest = object_of(schema);
    merge_branches(&mut rest, kind, &mut sentences);
    rest.shift_remove("type");
    let description = take_description(&mut rest);
    let mut contents = JsonObject::new();
    match kind {
        "object" => take_properties(&mut rest, &mut contents, format),
        "array" => take_items(&mut rest, &mut contents, format),
        _ if format == SchemaFormat::OpenTool => take_values(&mut rest, kind, &mut contents),
        _ => {}
    }
    add_sentences(rest, &mut sentences);
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
    let text = appended(text, sentences);
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
    let names = names(rest.shift_remove("required")).into_iter();
    let (required, others): (Vec<_>, Vec<_>) = names.partition(is_known);
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
        if rest.shift_remove("const").is_none() {
            rest.shift_remove("enum");
        }
        contents.insert("enum".into(), values.into());
    }
}

/// Merges branches into the schema itself. Branches that the merged schema does not fully express
/// are kept as well.
fn merge_branches(schema: &mut JsonObject, kind: &str, sentences: &mut Vec<String>) {
    unwrap_only_branch(schema);
    for keyword in BRANCHES {
        let Some(Value::Array(branches)) = schema.shift_remove(keyword) else {
            continue;
        };
        let is_union = keyword != "allOf";
        if is_union && !schema.contains_key("type") && branches.iter().all(is_bare) {
            // The sentence about types covers these branches.
            continue;
        }
        let constants = constants_in(&branches);
        if is_union
            && !schema.contains_key("enum")
            && let Some(constants) =
                constants.filter(|all| all.iter().all(|(value, _)| fits(value, kind)))
        {
            let values = constants.into_iter().map(|(value, _)| value.clone());
            schema.insert("enum".into(), values.collect());
            sentences.extend(branches.iter().filter_map(sentence_of_constant));
            if branches.iter().all(is_plain_constant) {
                continue;
            }
        } else if branches.iter().all(|branch| kinds_of(branch) == ["object"]) {
            merge_objects(schema, keyword, &branches);
        }
        schema.insert(keyword.into(), branches.into());
    }
}

/// Replaces a schema with its only branch other than `null`: the schema of an `Option`.
fn unwrap_only_branch(schema: &mut JsonObject) {
    for keyword in BRANCHES {
        let Some(Value::Array(branches)) = schema.get_mut(keyword) else {
            continue;
        };
        if keyword != "allOf" {
            branches.retain(|branch| kinds_of(branch) != ["null"]);
        }
        let [Value::Object(only)] = branches.as_slice() else {
            continue;
        };
        let only = only.clone();
        // The schema's own description takes precedence over its branch's.
        let may_be_in_both = [keyword, "description"];
        let is_free = |name: &str| may_be_in_both.contains(&name) || !schema.contains_key(name);
        if only.keys().all(|name| is_free(name)) {
            schema.shift_remove(keyword);
            for (name, value) in only {
                schema.entry(name).or_insert(value);
            }
            return unwrap_only_branch(schema);
        }
    }
}

fn sentence_of_constant(branch: &Value) -> Option<String> {
    let text = branch.get("description")?.as_str()?.trim_end_matches('.');
    let values = listed(values_of(branch.as_object()?)?, " or ");
    Some(format!("{values}: {text}."))
}

/// Returns true if a sentence covers everything in a constant's schema.
fn is_plain_constant(branch: &Value) -> bool {
    let is_covered =
        |name: &String| ["const", "description", "enum", "type"].contains(&name.as_str());
    let branch = branch.as_object();
    branch.is_some_and(|branch| branch.keys().all(is_covered))
}

/// Adds the properties of all branches to the schema; a property is required if all branches
/// require it or, with `allOf`, if any of them does.
fn merge_objects(schema: &mut JsonObject, keyword: &str, branches: &[Value]) {
    let is_all_of = keyword == "allOf";
    let mut objects = Vec::new();
    let mut required = names(schema.shift_remove("required"));
    let mut in_branches: Option<Vec<String>> = None;
    objects.extend(schema.shift_remove("properties").map(object_of));
    for branch in branches {
        let mut branch = object_of(branch.clone());
        merge_branches(&mut branch, "object", &mut Vec::new());
        objects.extend(branch.shift_remove("properties").map(object_of));
        let names = names(branch.shift_remove("required"));
        in_branches = Some(match in_branches {
            None => names,
            Some(earlier) if is_all_of => [earlier, names].concat(),
            Some(earlier) => earlier
                .into_iter()
                .filter(|it| names.contains(it))
                .collect(),
        });
    }
    required.extend(in_branches.into_iter().flatten());
    let mut known = HashSet::new();
    required.retain(|name| known.insert(name.clone()));
    let properties = combined(keyword, objects);
    if !properties.is_empty() {
        schema.insert("properties".into(), properties.into());
    }
    schema.insert("required".into(), required.into());
}

/// Returns the properties of several objects. One that differs in them has any of its schemas or,
/// with `allOf`, all.
fn combined(keyword: &str, objects: Vec<JsonObject>) -> JsonObject {
    let (mut properties, mut added) = (JsonObject::new(), HashSet::new());
    for (name, property) in objects.into_iter().flatten() {
        if !added.insert((name.clone(), property.clone())) {
            continue;
        }
        if let Value::Array(several) = properties.entry(name).or_insert_with(|| json!([])) {
            several.push(property);
        }
    }
    let combine = if keyword == "allOf" { "allOf" } else { "anyOf" };
    for property in properties.values_mut() {
        *property = match property.as_array_mut() {
            Some(several) if several.len() == 1 => several.swap_remove(0),
            _ => json!({combine: property.take()}),
        };
    }
    properties
}

/// Merges the properties of unions at the root of an input into one object, which Anthropic's and
/// OpenAI's APIs require, and returns a note that describes the branches to the model; the server
/// still checks them. `None` without unions.
pub fn fold_unions(schema: &mut JsonObject) -> Option<String> {
    let taken = |keyword| Some((keyword, schema.shift_remove(keyword)?));
    let unions: Vec<_> = BRANCHES.into_iter().filter_map(taken).collect();
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

/// Adds a sentence for each keyword; those without one are quoted together.
pub fn add_sentences(rest: JsonObject, sentences: &mut Vec<String>) {
    let mut others = JsonObject::new();
    for (keyword, value) in rest {
        let sentence = match (keyword.as_str(), &value) {
            // Irrelevant to callers.
            (keyword, _) if has_role(keyword, &[Role::Identity]) => continue,
            ("readOnly" | "title" | "writeOnly", _)
            | ("additionalProperties" | "unevaluatedProperties", Value::Bool(false))
            | ("items", Value::Bool(true)) => continue,
            ("minimum", n) => format!("Must be at least {n}."),
            ("maximum", n) => format!("Must be at most {n}."),
            ("minLength", n) => has_count("at least", n, "character", "characters") + ".",
            ("maxLength", n) => has_count("at most", n, "character", "characters") + ".",
            ("minItems", n) => has_count("at least", n, "item", "items") + ".",
            ("maxItems", n) => has_count("at most", n, "item", "items") + ".",
            ("pattern", Value::String(it)) => format!("Must match the pattern `{it}`."),
            ("format", Value::String(it)) => format!("Format: {it}."),
            ("default", it) => format!("Default: {it}."),
            ("examples", Value::Array(all)) => format!("Examples: {}.", listed(all, ", ")),
            ("additionalProperties", it) => match it["type"].as_str() {
                Some(kind) if is_bare(it) => format!("Any other property: {kind}."),
                _ => format!("Any other property: {it}."),
            },
            _ => {
                others.insert(keyword, value);
                continue;
            }
        };
        sentences.push(sentence);
    }
    if !others.is_empty() {
        sentences.push(format!("JSON Schema: {}.", Value::from(others)));
    }
}

/// Returns the types besides `kind`.
fn sentence_of_kinds(kinds: &[&str], kind: &str) -> Option<String> {
    let mut others: Vec<_> = kinds.iter().copied().filter(|it| *it != kind).collect();
    others.sort_by_key(|it| *it == "null");
    match kinds {
        ["null"] => Some("Always null.".into()),
        _ if kinds.len() == KINDS.len() => Some("Any JSON value.".into()),
        _ => (!others.is_empty()).then(|| format!("May also be {}.", others.join(" or "))),
    }
}

/// Returns the text with sentences after it.
pub fn appended(mut text: String, sentences: &[String]) -> String {
    for added in sentences {
        if !text.is_empty() {
            text = sentence(&text) + " ";
        }
        text.push_str(added);
    }
    text
}

/// Adds a schema of all items to a list that has none: some APIs of models demand one.
pub fn list_items(schema: &mut JsonObject) {
    if is_type(schema, "array") {
        schema.entry("items").or_insert_with(|| json!({}));
    }
}
