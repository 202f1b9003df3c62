//! What may have several forms, as one.
//!
//! A union is written as its first type that is not `null`. Where all forms are objects, the one
//! object has the properties of all, so that a caller can send any of them.

use serde_json::Value;

use super::{
    Object, Reduced,
    kind::{fits, kinds_of},
    rules::text_of,
};

/// The forms of a union, if the schema is one.
pub(super) fn forms_of(schema: &Object) -> Option<Vec<&Value>> {
    let forms = schema.get("oneOf").or_else(|| schema.get("anyOf"))?;
    Some(forms.as_array()?.iter().collect())
}

fn is_null(form: &Value) -> bool {
    form.get("type").is_some_and(|kind| kind == "null") || form.get("const") == Some(&Value::Null)
}

impl Reduced {
    /// Types besides the one that is written.
    pub(super) fn take_kinds(&mut self, schema: &Object) {
        let kinds = kinds_of(schema);
        if kinds == ["null"] {
            self.may_be_null = true;
            self.rules.push("Always null.".to_owned());
            return;
        }
        let others: Vec<_> = kinds
            .into_iter()
            .filter(|kind| *kind != self.kind)
            .collect();
        self.may_be_null |= others.contains(&"null");
        self.add_kinds(others.iter().filter(|kind| **kind != "null"));
        if !others.is_empty() {
            self.rules
                .push(format!("May also be {}.", others.join(" or ")));
        }
    }

    pub(super) fn add_kinds<'a>(&mut self, kinds: impl IntoIterator<Item = &'a &'static str>) {
        for kind in kinds {
            if !self.kinds.contains(kind) {
                self.kinds.push(kind);
            }
        }
    }

    /// `allOf`: what all parts say holds at once.
    pub(super) fn take_parts(&mut self, schema: &Object) {
        let parts = schema.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            let part = Self::with_rules_aside(part);
            if part.kind != self.kind {
                // All that it says are rules, for whatever type there is.
                let is_any = part
                    .rules
                    .first()
                    .is_some_and(|rule| rule == "Any JSON value.");
                self.rules
                    .extend(part.rules.into_iter().skip(usize::from(is_any)));
                continue;
            }
            self.required.extend(part.required.iter().cloned());
            for (name, property) in part.properties.iter().flatten() {
                self.add_part(name, property);
            }
            self.fill_in(part);
        }
    }

    fn add_part(&mut self, name: &str, property: &Self) {
        let properties = self.properties.get_or_insert_default();
        match properties.iter_mut().find(|(known, _)| known == name) {
            None => properties.push((name.to_owned(), property.clone())),
            Some((_, known)) if known.text() == property.text() => {}
            Some((_, known)) => known.say(&format!("At the same time: {}.", property.text())),
        }
    }

    /// `oneOf` and `anyOf`.
    pub(super) fn take_forms(&mut self, schema: &Object) {
        let Some(forms) = forms_of(schema) else {
            return;
        };
        let names_kinds = !kinds_of(schema).is_empty();
        let (nulls, forms): (Vec<&Value>, Vec<&Value>) =
            forms.into_iter().partition(|form| is_null(form));
        self.may_be_null |= !nulls.is_empty();
        let reduced: Vec<_> = forms.iter().map(|it| Self::with_rules_aside(it)).collect();
        for form in &reduced {
            if !names_kinds {
                self.add_kinds(&form.kinds);
            }
            self.may_be_null |= form.may_be_null;
        }
        let is_object = |form: &Self| form.kinds == ["object"];
        if let Some(constants) = constants_of(&forms, self.kind) {
            self.take_constants(constants);
        } else if self.kind == "object" && reduced.len() > 1 && reduced.iter().all(is_object) {
            self.take_objects(reduced, &forms);
        } else {
            self.take_first(reduced, &forms);
        }
        if !nulls.is_empty() {
            self.rules.push("May also be null.".to_owned());
        }
    }

    /// The form that is of the type that is written; the others are said.
    fn take_first(&mut self, mut reduced: Vec<Self>, forms: &[&Value]) {
        let written = reduced.iter().position(|form| form.kind == self.kind);
        let others = forms.iter().enumerate();
        let others = others.filter(|(place, _)| Some(*place) != written);
        let rules = others.map(|(_, form)| format!("May also be: {}.", text_of(form)));
        let rules: Vec<_> = rules.collect();
        if let Some(place) = written {
            let first = reduced.swap_remove(place);
            self.required.extend(first.required.iter().cloned());
            for (name, property) in first.properties.iter().flatten() {
                self.add_part(name, property);
            }
            self.fill_in(first);
        }
        self.rules.extend(rules);
    }

    /// What another says where this one says nothing.
    fn fill_in(&mut self, other: Self) {
        if self.description.is_empty() {
            self.description = other.description;
        }
        if self.items.is_none() {
            self.items = other.items;
        }
        if self.values.is_empty() {
            self.choose(&other.values);
        }
        self.rules.extend(other.rules);
    }

    /// Constants with a description each: how schemars writes an enum whose variants are
    /// explained.
    fn take_constants(&mut self, constants: Vec<(&Value, Option<&str>)>) {
        for (value, description) in constants {
            self.choose(std::slice::from_ref(value));
            if let Some(description) = description {
                let description = description.trim_end_matches('.');
                self.rules.push(format!("{value}: {description}."));
            }
        }
    }
}

/// The forms' constants, if that is what all of them are.
fn constants_of<'a>(forms: &[&'a Value], kind: &str) -> Option<Vec<(&'a Value, Option<&'a str>)>> {
    if forms.is_empty() || matches!(kind, "object" | "array") {
        return None;
    }
    let mut found = Vec::new();
    for form in forms {
        let description = form.get("description").and_then(Value::as_str);
        let listed = form.get("enum").and_then(Value::as_array);
        let values = match (form.get("const"), listed) {
            (Some(one), _) => std::slice::from_ref(one),
            (None, Some(several)) => several,
            (None, None) => return None,
        };
        if !values.iter().all(|value| fits(value, kind)) {
            return None;
        }
        found.extend(values.iter().map(|value| (value, description)));
    }
    Some(found)
}
