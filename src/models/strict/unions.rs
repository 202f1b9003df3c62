//! Unions in OpenAI's subset, which has `anyOf` only.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Strict, allows_null, described, is_closed, merge};
use crate::{
    payload::JsonObject,
    tool::schema::reduced::keywords::{kinds_of, listed, names, object_of, values_of},
};

/// Keywords that describe a union rather than restrict its values.
const ANNOTATIONS: [&str; 6] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "deprecated",
];

impl Strict<'_> {
    pub(super) fn union(&mut self, mut whole: JsonObject, is_nullable: bool) -> Option<Value> {
        let (keyword, forms) = match (whole.shift_remove("anyOf"), whole.shift_remove("oneOf")) {
            (Some(Value::Array(forms)), None) => ("anyOf", forms),
            (None, Some(Value::Array(forms))) => ("oneOf", forms),
            _ => return None,
        };
        let mut annotations = JsonObject::new();
        for name in ANNOTATIONS {
            annotations.extend(whole.shift_remove(name).map(|it| (name.to_owned(), it)));
        }
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
        let mut sentences = Vec::new();
        if keyword == "oneOf" && !are_disjoint(&complete) {
            sentences.push("Must match exactly one of the forms.".to_owned());
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
        Some(described(json!({"anyOf": listed}), annotations, sentences))
    }

    /// A form with the rules that stand next to the union.
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

/// The values of a union of constants, and a sentence for each that has a description.
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

/// The maximum number of forms of which each is compared with each.
const MAX_COMPARED: usize = 100;

/// True if no value matches two forms, as far as they are compared: then `anyOf` means the same as
/// `oneOf`.
fn are_disjoint(forms: &[JsonObject]) -> bool {
    let mut pairs = forms.iter().enumerate();
    forms.len() <= MAX_COMPARED
        && pairs.all(|(index, one)| {
            forms[index + 1..]
                .iter()
                .all(|other| are_two_disjoint(one, other))
        })
}

fn are_two_disjoint(one: &JsonObject, other: &JsonObject) -> bool {
    let kinds = kinds_of(&one.clone().into());
    let others = kinds_of(&other.clone().into());
    let is_number = |kinds: &[&str]| kinds.contains(&"number") || kinds.contains(&"integer");
    let share_kind = kinds.iter().any(|kind| others.contains(kind));
    let share_number = is_number(&kinds) && is_number(&others);
    if !share_kind && !share_number {
        return true;
    }
    let is_object = kinds == ["object"] && others == ["object"];
    is_object && (excludes(one, other) || excludes(other, one) || differ_in_constant(one, other))
}

/// True if `one` requires a property that `other` forbids.
fn excludes(one: &JsonObject, other: &JsonObject) -> bool {
    let required = names(one.get("required").cloned());
    let properties = other.get("properties");
    let has = |name: &String| properties.is_some_and(|it| it.get(name).is_some());
    is_closed(other) && required.iter().any(|name| !has(name))
}

/// True if both require a property whose values differ.
fn differ_in_constant(one: &JsonObject, other: &JsonObject) -> bool {
    let required = names(one.get("required").cloned());
    let others = names(other.get("required").cloned());
    let values = |object: &JsonObject, name: &str| -> Option<Vec<Value>> {
        Some(values_of(object.get("properties")?.get(name)?.as_object()?)?.to_vec())
    };
    required
        .iter()
        .filter(|name| others.contains(name))
        .any(|name| match (values(one, name), values(other, name)) {
            (Some(one), Some(other)) => one.iter().all(|value| !other.contains(value)),
            _ => false,
        })
}
