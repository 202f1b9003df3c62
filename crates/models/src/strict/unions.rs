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
        let ((Some(Value::Array(forms)), None) | (None, Some(Value::Array(forms)))) =
            (whole.shift_remove("anyOf"), whole.shift_remove("oneOf"))
        else {
            return None;
        };
        let annotations = take_annotations(&mut whole);
        let mut complete = Vec::new();
        for form in forms {
            complete.push(self.complete(&whole, form)?);
        }
        if let Some((values, sentences)) = constants(&complete) {
            let kinds = kinds_of(&json!({"enum": values}));
            let mut rest = JsonObject::from_iter([("enum".to_owned(), values.into())]);
            rest.insert("type".into(), kinds.into());
            let schema = self.schema(&rest.into(), is_nullable)?;
            return Some(described(schema, annotations, sentences));
        }
        let (mut listed, mut known) = (Vec::new(), HashSet::new());
        for form in complete {
            let form = self.schema(&form.into(), false)?;
            if known.insert(form.clone()) {
                listed.push(form);
            }
        }
        if is_nullable && !listed.iter().any(allows_null) {
            listed.push(json!({"type": "null"}));
        }
        Some(described(json!({"anyOf": listed}), annotations, Vec::new()))
    }

    /// Completes a form with the rules that stand next to the union.
    fn complete(&self, whole: &JsonObject, form: Value) -> Option<JsonObject> {
        let Value::Object(form) = form else {
            return None;
        };
        let form = merge::all_of(form, self.defs, self.copies)?;
        let is_implied =
            |(name, value): (&String, &Value)| name == "type" && form.get("type") == Some(value);
        if whole.iter().all(is_implied) {
            return Some(form);
        }
        let form = merge::resolved(form, self.defs, self.copies)?;
        // It closes the form with its properties and those of the whole.
        let whole = whole.clone().into();
        self.copies.spend(&whole)?;
        let mut whole = object_of(whole);
        let closes = whole.shift_remove("unevaluatedProperties");
        let is_open = closes.as_ref().is_some_and(|it| *it != false);
        // A closed form has no properties of the whole.
        let has_others = whole.get("properties").is_some() && is_closed(&form);
        if is_open || has_others {
            return None;
        }
        merge::both(whole, form)
    }
}

/// Returns the values of a union of constants, and a sentence for each that has a description.
fn constants(forms: &[JsonObject]) -> Option<(Vec<Value>, Vec<String>)> {
    let (mut values, mut known, mut sentences) = (Vec::new(), HashSet::new(), Vec::new());
    for form in forms {
        let covered = ["const", "enum", "type", "description", "title"];
        if !form
            .keys()
            .all(|keyword| covered.contains(&keyword.as_str()))
        {
            return None;
        }
        let of_form = match values_of(form) {
            Some(values) => values.to_vec(),
            None if form.get("type").is_some_and(|it| it == "null") => vec![Value::Null],
            None => return None,
        };
        if let Some(text) = form.get("description").and_then(Value::as_str) {
            let text = text.trim_end_matches('.');
            sentences.push(format!("{}: {text}.", listed(&of_form, " or ")));
        }
        for value in of_form {
            if known.insert(value.clone()) {
                values.push(value);
            }
        }
    }
    Some((values, sentences))
}
