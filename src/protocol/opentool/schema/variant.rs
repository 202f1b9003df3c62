//! Objects of several forms, as one object with the properties of all.
//!
//! Where two forms mean different things by one name, both are said.

use serde_json::Value;

use super::Reduced;

impl Reduced {
    pub(super) fn take_objects(&mut self, reduced: Vec<Self>, forms: &[&Value]) {
        let described = |form: &&Value| {
            form.get("description")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let texts = reduced
            .iter()
            .zip(forms)
            .map(|(form, schema)| form.as_form(described(schema)));
        let rule = format!(
            "Has one of these forms: {}.",
            texts.collect::<Vec<_>>().join("; ")
        );
        let mut in_all: Option<Vec<String>> = None;
        for form in reduced {
            in_all = Some(match in_all {
                None => form.required,
                Some(names) => common(names, &form.required),
            });
            for (name, property) in form.properties.into_iter().flatten() {
                self.add_alternative(name, property);
            }
            self.rules.extend(form.rules);
        }
        self.required.extend(in_all.unwrap_or_default());
        self.rules.push(rule);
    }

    fn add_alternative(&mut self, name: String, property: Self) {
        let properties = self.properties.get_or_insert_default();
        match properties.iter_mut().find(|(known, _)| *known == name) {
            None => properties.push((name, property)),
            Some((_, known)) => known.or(property),
        }
    }

    /// One or the other, in as few words as keep all of it.
    fn or(&mut self, other: Self) {
        if self.text() == other.text() {
            return;
        }
        self.add_kinds(&other.kinds);
        self.may_be_null |= other.may_be_null;
        let chooses = |schema: &Self| !schema.values.is_empty();
        let has_names = |schema: &Self| schema.properties.is_some();
        let is_same_kind = self.kind == other.kind;
        if is_same_kind && chooses(self) && chooses(&other) {
            // The tag of variants: the one property has all their constants.
            self.choose(&other.values);
        } else if is_same_kind && has_names(self) && has_names(&other) {
            let required = std::mem::take(&mut self.required);
            self.required = common(required, &other.required);
            for (name, property) in other.properties.into_iter().flatten() {
                self.add_alternative(name, property);
            }
        } else {
            return self.say(&format!("In another form: {}.", other.text()));
        }
        if other.description != self.description && !other.description.is_empty() {
            self.say(&other.description);
        }
    }

    pub(super) fn say(&mut self, rule: &str) {
        self.rules = vec![rule.to_owned()];
        let mut description = std::mem::take(&mut self.description);
        self.append_rules(&mut description);
        self.description = description;
        self.rules.clear();
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// `{type: "circle", radius}`, and what it is for.
    fn as_form(&self, description: Option<String>) -> String {
        let properties = self.properties.iter().flatten();
        let names = properties.map(|(name, property)| {
            let optional = if self.required.contains(name) {
                ""
            } else {
                "?"
            };
            match property.values.as_slice() {
                [constant] => format!("{name}{optional}: {constant}"),
                _ => format!("{name}{optional}"),
            }
        });
        let names = names.collect::<Vec<_>>().join(", ");
        match description {
            Some(description) => {
                format!("{{{names}}} ({})", description.trim_end_matches('.'))
            }
            None => format!("{{{names}}}"),
        }
    }
}

fn common(mut names: Vec<String>, others: &[String]) -> Vec<String> {
    names.retain(|name| others.contains(name));
    names
}
