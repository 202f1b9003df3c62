//! The splitting of schemas that allow values of several types or branches, for formats with
//! `anyOf`.

use serde_json::{Value, json};

use super::{
    branches::constants,
    keywords::{KINDS, kinds_of, object_of},
    sentences, take_description,
};
use crate::json::JsonObject;

/// The types that together describe any value. Arrays are missing because they need `items`.
const ANY: [&str; 4] = ["string", "number", "boolean", "object"];

/// A description of more bytes is not repeated: there may be many branches.
const LONGEST_REPEATED: usize = 1024;

/// Returns the branches of a schema, if there are several. Each has the description of the whole,
/// because nothing may stand next to `anyOf`; a long one is in the first branch only.
pub(super) fn branches_of(schema: &Value) -> Option<Vec<Value>> {
    let kinds = kinds_of(schema);
    let is_nullable = kinds.contains(&"null") && kinds.len() < KINDS.len();
    let mut whole = object_of(schema.clone());
    let branches = match union_in(&mut whole) {
        Some(branches) => branches,
        None => types_in(&whole, &kinds)?,
    };
    let text = take_description(&mut whole);
    let described = |(index, branch): (usize, Value)| {
        let mut branch = object_of(branch);
        let own = take_description(&mut branch);
        let own = Vec::from_iter(Some(own).filter(|it| !it.is_empty()));
        let is_repeated = index == 0 || text.len() <= LONGEST_REPEATED;
        let text = if is_repeated { text.as_str() } else { "" };
        let text = sentences::appended(text.to_owned(), &own);
        if !text.is_empty() {
            branch.insert("description".into(), text.into());
        }
        if is_nullable && let Some(kind) = branch.get_mut("type").filter(|it| it.is_string()) {
            *kind = json!([kind.take(), "null"]);
        }
        Value::from(branch)
    };
    Some(branches.into_iter().enumerate().map(described).collect())
}

/// Returns the branches of a union without other rules next to it, except for constants and
/// `Option`s.
fn union_in(whole: &mut JsonObject) -> Option<Vec<Value>> {
    let keyword = ["anyOf", "oneOf"]
        .into_iter()
        .find(|it| whole.contains_key(*it))?;
    let mut others = whole.keys().filter(|it| *it != keyword);
    let is_annotation =
        |name: &String| ["description", "title", "$comment", "type"].contains(&name.as_str());
    if !others.all(is_annotation) {
        return None;
    }
    let mut branches = whole.get(keyword)?.as_array()?.clone();
    branches.retain(|branch| kinds_of(branch) != ["null"]);
    if branches.len() < 2
        || ["string", "integer", "number"]
            .iter()
            .any(|kind| constants(&branches, kind).is_some())
    {
        return None;
    }
    whole.shift_remove(keyword);
    Some(branches)
}

/// Returns a branch for each type.
fn types_in(whole: &JsonObject, kinds: &[&'static str]) -> Option<Vec<Value>> {
    let combines = ["anyOf", "oneOf", "allOf", "enum", "const"];
    if combines.iter().any(|it| whole.contains_key(*it)) {
        return None;
    }
    let is_any = kinds.len() == KINDS.len();
    let kinds: Vec<_> = if is_any {
        ANY.into()
    } else {
        kinds.iter().copied().filter(|it| *it != "null").collect()
    };
    if kinds.len() < 2 {
        return None;
    }
    let branch = |kind: &&str| {
        let mut branch = whole.clone();
        branch.shift_remove("description");
        branch.insert("type".into(), (*kind).into());
        Value::from(branch)
    };
    Some(kinds.iter().map(branch).collect())
}
