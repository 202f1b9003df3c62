//! Unions in OpenAI's subset, which has `anyOf` only.

use std::collections::HashSet;

use lambda_tools_core::{
    json::JsonObject,
    tool::schema::reduced::keywords::{kinds_of, listed, object_of, values_of},
};
use serde_json::{Value, json};

use super::{Strict, allows_null, described, is_closed, merge, take_annotations};

impl Strict<'_> {
    pub(super) fn union(&mut self, mut whole: JsonObject, is_nullable: bool) -> Option<Value> {
        let ((Some(Value::Array(branches)), None) | (None, Some(Value::Array(branches)))) =
            (whole.shift_remove("anyOf"), whole.shift_remove("oneOf"))
        else {
            return None;
        };
        let annotations = take_annotations(&mut whole);
        let mut complete = Vec::new();
        for branch in branches {
            complete.push(self.complete(&whole, branch)?);
        }
        if let Some((values, sentences)) = constants(&complete) {
            let kinds = kinds_of(&json!({"enum": values}));
            let mut rest = JsonObject::from_iter([("enum".to_owned(), values.into())]);
            rest.insert("type".into(), kinds.into());
            let schema = self.schema(&rest.into(), is_nullable)?;
            return Some(described(schema, annotations, sentences));
        }
        let (mut listed, mut known) = (Vec::new(), HashSet::new());
        for branch in complete {
            let branch = self.schema(&branch.into(), false)?;
            if known.insert(branch.clone()) {
                listed.push(branch);
            }
        }
        if is_nullable && !listed.iter().any(allows_null) {
            listed.push(json!({"type": "null"}));
        }
        Some(described(json!({"anyOf": listed}), annotations, Vec::new()))
    }

    /// Completes a branch with the rules that stand next to the union.
    fn complete(&self, whole: &JsonObject, branch: Value) -> Option<JsonObject> {
        let Value::Object(branch) = branch else {
            return None;
        };
        let branch = merge::all_of(branch, self.defs, self.copies)?;
        let is_implied =
            |(name, value): (&String, &Value)| name == "type" && branch.get("type") == Some(value);
        if whole.iter().all(is_implied) {
            return Some(branch);
        }
        let branch = merge::resolved(branch, self.defs, self.copies)?;
        // It closes the branch with its properties and those of the whole.
        let whole = whole.clone().into();
        self.copies.spend(&whole)?;
        let mut whole = object_of(whole);
        let closes = whole.shift_remove("unevaluatedProperties");
        let is_open = closes.as_ref().is_some_and(|it| *it != false);
        // A closed branch has no properties of the whole.
        let has_others = whole.get("properties").is_some() && is_closed(&branch);
        if is_open || has_others {
            return None;
        }
        merge::both(whole, branch)
    }
}

/// Returns the values of a union of constants, and a sentence for each that has a description.
fn constants(branches: &[JsonObject]) -> Option<(Vec<Value>, Vec<String>)> {
    let (mut values, mut known, mut sentences) = (Vec::new(), HashSet::new(), Vec::new());
    for branch in branches {
        let covered = ["const", "enum", "type", "description", "title"];
        if !branch
            .keys()
            .all(|keyword| covered.contains(&keyword.as_str()))
        {
            return None;
        }
        let of_branch = match values_of(branch) {
            Some(values) => values.to_vec(),
            None if branch.get("type").is_some_and(|it| it == "null") => vec![Value::Null],
            None => return None,
        };
        if let Some(text) = branch.get("description").and_then(Value::as_str) {
            let text = text.trim_end_matches('.');
            sentences.push(format!("{}: {text}.", listed(&of_branch, " or ")));
        }
        for value in of_branch {
            if known.insert(value.clone()) {
                values.push(value);
            }
        }
    }
    Some((values, sentences))
}
