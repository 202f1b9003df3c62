//! The merging of a schema's `oneOf`, `anyOf` and `allOf` into one, as far as the format allows.
//!
//! Enums with doc comments, enums with data in their variants, and `Option`s have such schemas. A
//! client sends only the properties and choices that it sees, so the result lists those of all
//! branches.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::keywords::{constants_in, fits, is_bare, kinds_of, listed, names, object_of, values_of};
use crate::{json::JsonObject, tool::schema::vocabulary::BRANCHES};

/// Merges branches into the schema itself. Branches that the merged schema does not fully express
/// are kept as well.
pub(super) fn merge(schema: &mut JsonObject, kind: &str, sentences: &mut Vec<String>) {
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
    branch
        .as_object()
        .is_some_and(|branch| branch.keys().all(is_covered))
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
        merge(&mut branch, "object", &mut Vec::new());
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
pub(crate) fn combined(keyword: &str, objects: Vec<JsonObject>) -> JsonObject {
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
