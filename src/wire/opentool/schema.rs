//! From JSON Schema to the few keywords that OpenTool's schemas have.
//!
//! One type of six, `description`, `properties`, `items`, `enum` and `required`: published clients
//! refuse more. What is lost is said in the description, which is what models read.

mod rules;
mod union;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// A schema of OpenTool's.
#[derive(Serialize)]
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
    /// Whether values of another type than `kind` fit as well, `null` aside.
    #[serde(skip)]
    may_be_another: bool,
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

    pub(super) fn is_object(&self) -> bool {
        self.kind == "object"
    }

    /// As what `result` is: the object that a tool gives, or one around any other value.
    pub(super) fn into_result(mut self) -> Self {
        if self.is_object() && !self.may_be_another {
            if self.may_be_null {
                // `null` becomes an empty object.
                self.required.clear();
            }
            return self;
        }
        let is_required = !self.may_be_null && !(self.may_be_another);
        let mut description = self.description.clone();
        if self.may_be_another {
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
            may_be_another: false,
        }
    }

    fn anything() -> Self {
        Self {
            rules: vec!["Any JSON value.".to_owned()],
            may_be_null: true,
            may_be_another: true,
            ..Self::bare("object")
        }
    }

    fn of_object(schema: &Object) -> Self {
        let is_of_no_kind = union::kinds_of(schema).is_empty();
        let mut reduced = match kind_of(schema) {
            Some(kind) => Self::bare(kind),
            None if is_of_no_kind && union::forms_of(schema).is_none() => Self::anything(),
            None => Self::bare("object"),
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
        reduced
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
        let is_scalar = !matches!(self.kind, "object" | "array");
        let fits = |value: &&Value| is_scalar && fits(value, self.kind);
        self.values = values.iter().filter(fits).cloned().collect();
        let others: Vec<_> = values.iter().filter(|it| !fits(it)).collect();
        if others.is_empty() {
            return;
        }
        let others: Vec<_> = others.iter().map(ToString::to_string).collect();
        let also = if self.values.is_empty() { "" } else { "also " };
        self.rules
            .push(format!("May {also}be {}.", others.join(" or ")));
    }
}

/// The type that is written; `None` where there is none, or only `null`.
fn kind_of(schema: &Object) -> Option<&'static str> {
    let named = union::kinds_of(schema).into_iter().find(|it| *it != "null");
    let by_value = || {
        let listed = schema.get("enum").and_then(Value::as_array);
        let mut values = schema
            .get("const")
            .into_iter()
            .chain(listed.into_iter().flatten());
        values.find_map(kind_of_value)
    };
    let by_keyword = || {
        const KEYWORDS: [(&str, &[&str]); 4] = [
            (
                "object",
                &[
                    "properties",
                    "additionalProperties",
                    "patternProperties",
                    "required",
                ],
            ),
            ("array", &["items", "prefixItems", "minItems", "maxItems"]),
            ("string", &["pattern", "minLength", "maxLength", "format"]),
            (
                "number",
                &[
                    "minimum",
                    "maximum",
                    "exclusiveMinimum",
                    "exclusiveMaximum",
                    "multipleOf",
                ],
            ),
        ];
        let has = |names: &[&str]| names.iter().any(|name| schema.contains_key(*name));
        KEYWORDS
            .into_iter()
            .find(|(_, names)| has(names))
            .map(|(kind, _)| kind)
    };
    let by_part = || {
        let parts = schema
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let forms = union::forms_of(schema).into_iter().flatten();
        let mut kinds = parts.chain(forms).filter_map(|it| kind_of(it.as_object()?));
        kinds.next()
    };
    named.or_else(by_value).or_else(by_keyword).or_else(by_part)
}

fn kind_of_value(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    })
}

fn fits(value: &Value, kind: &str) -> bool {
    let of_value = kind_of_value(value);
    of_value == Some(kind) || (of_value, kind) == (Some("integer"), "number")
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
