//! What may have several forms, as one.
//!
//! A union is written as its first type that is not `null`. Where all forms are objects, the one
//! object has the properties of all, so that a caller can send any of them.

use serde_json::Value;

use super::{Object, Reduced, kind_of, names_in, rules::text_of};

/// The types that a schema names, known ones only.
pub(super) fn kinds_of(schema: &Object) -> Vec<&'static str> {
    const KNOWN: [&str; 7] = [
        "boolean", "integer", "number", "string", "array", "object", "null",
    ];
    let known = |name: &Value| KNOWN.into_iter().find(|known| name == known);
    match schema.get("type") {
        Some(Value::Array(several)) => several.iter().filter_map(known).collect(),
        Some(one) => known(one).into_iter().collect(),
        None => Vec::new(),
    }
}

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
        self.may_be_another |= others.iter().any(|kind| *kind != "null");
        if !others.is_empty() {
            self.rules
                .push(format!("May also be {}.", others.join(" or ")));
        }
    }

    /// `allOf`: what all parts say holds at once.
    pub(super) fn take_parts(&mut self, schema: &Object) {
        let parts = schema.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            let part = Self::with_rules_aside(part);
            if part.may_be_another && part.rules == ["Any JSON value."] {
                continue;
            }
            self.required.extend(part.required.iter().cloned());
            self.absorb(part);
        }
        self.required.dedup();
    }

    /// `oneOf` and `anyOf`.
    pub(super) fn take_forms(&mut self, schema: &Object) {
        let Some(forms) = forms_of(schema) else {
            return;
        };
        let (nulls, forms): (Vec<&Value>, Vec<&Value>) =
            forms.into_iter().partition(|form| is_null(form));
        if !nulls.is_empty() {
            self.may_be_null = true;
        }
        let is_object = |form: &&Value| form.as_object().and_then(kind_of) == Some("object");
        let constants = constants_of(&forms, self.kind);
        if let Some(constants) = constants {
            self.take_constants(constants);
        } else if self.kind == "object" && forms.len() > 1 && forms.iter().all(is_object) {
            self.take_objects(&forms);
        } else if let Some((first, others)) = forms.split_first() {
            let first = Self::with_rules_aside(first);
            self.required.extend(first.required.iter().cloned());
            self.may_be_null |= first.may_be_null;
            self.absorb(first);
            self.may_be_another |= !others.is_empty();
            let texts = others.iter().map(|form| text_of(form));
            self.rules
                .extend(texts.map(|text| format!("May also be: {text}.")));
        }
        if !nulls.is_empty() {
            self.rules.push("May also be null.".to_owned());
        }
    }

    fn absorb(&mut self, other: Self) {
        if self.description.is_empty() {
            self.description = other.description;
        }
        if self.items.is_none() {
            self.items = other.items;
        }
        if self.values.is_empty() {
            self.values = other.values;
        }
        for (name, property) in other.properties.into_iter().flatten() {
            self.add_property(name, property);
        }
        self.rules.extend(other.rules);
    }

    fn add_property(&mut self, name: String, property: Self) {
        let properties = self.properties.get_or_insert_default();
        match properties.iter_mut().find(|(known, _)| *known == name) {
            None => properties.push((name, property)),
            // The tag of variants: the one property has all their constants.
            Some((_, known)) if known.kind == property.kind => {
                let both_choose = !known.values.is_empty() && !property.values.is_empty();
                if both_choose {
                    let new = property.values.into_iter();
                    let new: Vec<_> = new.filter(|it| !known.values.contains(it)).collect();
                    known.values.extend(new);
                } else {
                    known.values.clear();
                }
            }
            Some((_, known)) => {
                known.may_be_another = true;
                known.description.push_str(" In another form: ");
                known.description.push_str(property.kind);
                known.description.push('.');
            }
        }
    }

    /// Constants with a description each: how schemars writes an enum whose variants are
    /// explained.
    fn take_constants(&mut self, constants: Vec<(&Value, Option<&str>)>) {
        for (value, description) in constants {
            self.values.push(value.clone());
            if let Some(description) = description {
                let description = description.trim_end_matches('.');
                self.rules.push(format!("{value}: {description}."));
            }
        }
    }

    fn take_objects(&mut self, forms: &[&Value]) {
        let mut in_all: Option<Vec<String>> = None;
        let mut texts = Vec::new();
        for form in forms {
            let required = names_in(form.get("required"));
            in_all = Some(match in_all {
                None => required,
                Some(mut names) => {
                    names.retain(|name| required.contains(name));
                    names
                }
            });
            texts.push(text_of_form(form));
            let mut reduced = Self::with_rules_aside(form);
            reduced.description.clear();
            self.absorb(reduced);
        }
        self.required.extend(in_all.unwrap_or_default());
        self.required.dedup();
        self.rules
            .push(format!("Has one of these forms: {}.", texts.join("; ")));
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
        if !values.iter().all(|value| super::fits(value, kind)) {
            return None;
        }
        found.extend(values.iter().map(|value| (value, description)));
    }
    Some(found)
}

/// `{type: "circle", radius}`, and what it is for.
fn text_of_form(form: &Value) -> String {
    let required = names_in(form.get("required"));
    let properties = form.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flatten().map(|(name, property)| {
        let optional = if required.contains(name) { "" } else { "?" };
        match property.get("const") {
            Some(constant) => format!("{name}{optional}: {constant}"),
            None => format!("{name}{optional}"),
        }
    });
    let names = names.collect::<Vec<_>>().join(", ");
    match form.get("description").and_then(Value::as_str) {
        Some(description) => {
            let description = description.trim_end_matches('.');
            format!("{{{names}}} ({description})")
        }
        None => format!("{{{names}}}"),
    }
}
