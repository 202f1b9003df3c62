//! Schemas that apply together.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::NOTE;
use crate::JsonObject;

/// Adds what another schema demands of the same value. Of rules that contradict each other, the first
/// one stays: the API checks the value in any case.
pub fn add_missing(schema: &mut JsonObject, other: JsonObject) {
    for (keyword, value) in other {
        match (&*keyword, schema.get_mut(&keyword), value) {
            ("properties", Some(Value::Object(known)), Value::Object(added)) => {
                for (name, property) in added {
                    known.entry(name).or_insert(property);
                }
            }
            ("required", Some(Value::Array(known)), Value::Array(added)) => {
                let mut seen: HashSet<_> = known.iter().cloned().collect();
                known.extend(added.into_iter().filter(|it| seen.insert(it.clone())));
            }
            (NOTE, Some(Value::String(known)), Value::String(added)) if *known != added => {
                *known = format!("{known} {added}");
            }
            (_, Some(_), _) => {}
            (_, None, value) => drop(schema.insert(keyword, value)),
        }
    }
}

/// Takes the only schema out of a list, or one that says the same as several constants.
pub(super) fn single_branch(branches: &mut Vec<Value>) -> Option<JsonObject> {
    if branches.len() == 1 {
        return match branches.pop() {
            Some(Value::Object(only)) => Some(only),
            _ => None,
        };
    }
    let constants = branches.iter().map(|it| it["const"].as_str());
    let constants: Vec<_> = constants.collect::<Option<_>>()?;
    if constants.is_empty() {
        return None;
    }
    let said = branches.iter().zip(&constants);
    let said = said.filter_map(|(it, constant)| {
        let text = it["description"].as_str()?;
        Some(format!("{constant}: {text}"))
    });
    let text = said.collect::<Vec<_>>().join("; ");
    let mut merged = JsonObject::from_iter([
        ("type".to_owned(), "string".into()),
        ("enum".to_owned(), constants.into()),
    ]);
    if !text.is_empty() {
        merged.insert("description".into(), text.into());
    }
    Some(merged)
}

/// Allows `null`, too.
pub(super) fn make_nullable(schema: &mut JsonObject) {
    if let Some(kinds) = schema.get_mut("type") {
        let mut all = match kinds.take() {
            Value::Array(all) => all,
            one => vec![one],
        };
        if !all.contains(&"null".into()) {
            all.push("null".into());
        }
        *kinds = all.into();
    }
    if let Some(constant) = schema.remove("const") {
        schema.insert("enum".into(), json!([constant]));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf")
        && !branches.is_empty()
    {
        branches.push(json!({"type": "null"}));
    }
}
