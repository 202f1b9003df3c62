//! From JSON Schema to the few keywords that OpenTool's schemas have.
//!
//! One type of six, `description`, `properties`, `items`, `enum` and `required`: published clients
//! refuse more. What is lost is said in the description, which is what models read.

mod kind;
mod rules;
mod union;
mod variant;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use kind::{fits, kind_of, kinds_of};

type Object = Map<String, Value>;

/// A schema of OpenTool's.
#[derive(Clone, Serialize)]
pub(super) struct Reduced {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "named_schemas"
    )]
    properties: Option<Vec<(String, Reduced)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<Reduced>>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    values: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required: Vec<String>,
    /// What the format cannot express, a sentence each.
    #[serde(skip)]
    rules: Vec<String>,
    #[serde(skip)]
    may_be_null: bool,
    /// All types of values that fit, `null` aside.
    #[serde(skip)]
    kinds: Vec<&'static str>,
}

/// A parameter of a function.
#[derive(Serialize)]
pub(super) struct Parameter {
    name: String,
    description: String,
    schema: Reduced,
    required: bool,
}

impl Reduced {
    /// Reduces a schema; its description ends with the rules that the format cannot express.
    pub(super) fn of(schema: &Value) -> Self {
        let mut reduced = Self::with_rules_aside(schema);
        let mut description = std::mem::take(&mut reduced.description);
        reduced.append_rules(&mut description);
        reduced.description = description;
        reduced
    }

    /// Reduces a schema whose rules are still wanted apart.
    pub(super) fn with_rules_aside(schema: &Value) -> Self {
        match schema {
            Value::Object(schema) => Self::of_object(schema),
            _ => Self::anything(),
        }
    }

    pub(super) fn append_rules(&self, text: &mut String) {
        for rule in &self.rules {
            if !text.is_empty() {
                let ends = text.ends_with(['.', '!', '?', ':']);
                text.push_str(if ends { " " } else { ". " });
            }
            text.push_str(rule);
        }
    }

    pub(super) fn empty_object() -> Self {
        Self {
            properties: Some(Vec::new()),
            ..Self::bare("object")
        }
    }

    /// As what `result` is: the object that a tool gives, or one around any other value.
    pub(super) fn into_result(mut self) -> Self {
        let may_be_object = self.kinds.contains(&"object");
        let is_object = may_be_object && self.kinds.len() == 1;
        if is_object {
            if self.may_be_null {
                // `null` becomes an empty object.
                self.required.clear();
            }
            return self;
        }
        let is_required = !self.may_be_null && !may_be_object;
        let mut description = self.description.clone();
        if may_be_object {
            let rule = "A value that is an object is the result itself, without `value`.";
            self.rules = vec![rule.to_owned()];
            self.append_rules(&mut description);
        }
        Self {
            description,
            required: Vec::from_iter(is_required.then(|| "value".to_owned())),
            properties: Some(vec![("value".to_owned(), self)]),
            ..Self::bare("object")
        }
    }

    pub(super) fn take_description(&mut self) -> String {
        std::mem::take(&mut self.description)
    }

    pub(super) fn into_parameters(self) -> Vec<Parameter> {
        let required = self.required;
        let properties = self.properties.unwrap_or_default().into_iter();
        properties
            .map(|(name, mut schema)| Parameter {
                description: schema.take_description(),
                required: required.contains(&name),
                name,
                schema,
            })
            .collect()
    }

    fn bare(kind: &'static str) -> Self {
        Self {
            kind,
            description: String::new(),
            properties: None,
            items: None,
            values: Vec::new(),
            required: Vec::new(),
            rules: Vec::new(),
            may_be_null: false,
            kinds: vec![kind],
        }
    }

    fn anything() -> Self {
        Self {
            rules: vec!["Any JSON value.".to_owned()],
            may_be_null: true,
            kinds: kind::ALL.to_vec(),
            ..Self::bare("object")
        }
    }

    fn of_object(schema: &Object) -> Self {
        let only_null = kinds_of(schema) == ["null"];
        let mut reduced = match kind_of(schema) {
            Some(kind) => Self::bare(kind),
            None if only_null || union::forms_of(schema).is_some() => Self::bare("object"),
            None => Self::anything(),
        };
        if let Some(Value::String(text)) = schema.get("description") {
            reduced.description.clone_from(text);
        }
        reduced.take_kinds(schema);
        reduced.take_properties(schema);
        reduced.take_items(schema);
        reduced.take_values(schema);
        reduced.take_parts(schema);
        reduced.take_forms(schema);
        reduced.rules.extend(rules::of(schema));
        reduced.keep_known_names();
        reduced
    }

    /// `required` may name what `properties` does not describe.
    fn keep_known_names(&mut self) {
        let properties = self.properties.as_deref().unwrap_or_default();
        let is_known = |name: &String| properties.iter().any(|(known, _)| known == name);
        let mut names: Vec<String> = Vec::new();
        for name in std::mem::take(&mut self.required) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let (known, others): (Vec<_>, Vec<_>) = names.into_iter().partition(is_known);
        self.required = known;
        if !others.is_empty() {
            self.rules
                .push(format!("Must have {}.", others.join(" and ")));
        }
    }

    fn take_properties(&mut self, schema: &Object) {
        if self.kind != "object" {
            return;
        }
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let possible = properties
                .iter()
                .filter(|(_, it)| **it != Value::Bool(false));
            let reduced = possible.map(|(name, schema)| (name.clone(), Self::of(schema)));
            self.properties = Some(reduced.collect());
        }
        self.required = names_in(schema.get("required"));
    }

    fn take_items(&mut self, schema: &Object) {
        if self.kind == "array"
            && let Some(items @ Value::Object(_)) = schema.get("items")
        {
            self.items = Some(Box::new(Self::of(items)));
        }
    }

    /// Constants are choices of one.
    fn take_values(&mut self, schema: &Object) {
        let constant = schema.get("const").map(std::slice::from_ref);
        let listed = schema.get("enum").and_then(Value::as_array);
        let Some(values) = constant.or(listed.map(Vec::as_slice)) else {
            return;
        };
        let is_said = self.may_be_null;
        self.may_be_null |= values.contains(&Value::Null);
        let others = self.choose(values);
        let others = others.iter().filter(|value| !(is_said && value.is_null()));
        let others: Vec<_> = others.map(ToString::to_string).collect();
        if others.is_empty() {
            return;
        }
        let may = match (constant, self.values.is_empty()) {
            (Some(_), _) => "Must be",
            (None, true) => "Must be one of:",
            (None, false) => "May also be",
        };
        self.rules.push(format!("{may} {}.", others.join(" or ")));
    }

    /// Adds the values that fit the type, each once; returns the others.
    fn choose<'a>(&mut self, values: &'a [Value]) -> Vec<&'a Value> {
        let is_scalar = !matches!(self.kind, "object" | "array");
        let mut others = Vec::new();
        for value in values {
            if !(is_scalar && fits(value, self.kind)) {
                others.push(value);
            } else if !self.values.contains(value) {
                self.values.push(value.clone());
            }
        }
        others
    }
}

fn names_in(names: Option<&Value>) -> Vec<String> {
    let names = names.and_then(Value::as_array).into_iter().flatten();
    names
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect()
}

#[expect(clippy::ref_option, reason = "serde hands over the field")]
fn named_schemas<S: Serializer>(
    schemas: &Option<Vec<(String, Reduced)>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let schemas = schemas.iter().flatten();
    let mut map = serializer.serialize_map(None)?;
    for (name, schema) in schemas {
        map.serialize_entry(name, schema)?;
    }
    map.end()
}

#[cfg(test)]
mod tests;
