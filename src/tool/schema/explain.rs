//! Finds the errors in a value, but no more than can be reported.
//!
//! The validator collects all errors before it returns the first, each with the forms that it
//! tried: a megabyte of invalid items becomes hundreds of megabytes. So it gets only small parts.
//! In a large value, the invalid parts are searched for one by one, along the keywords that assign
//! schemas to parts, until there are enough errors.

use std::collections::HashMap;

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::{
    part::{MessageSink, SchemaPart, joined},
    validator_of,
    vocabulary::{
        Role::{Condition, Form, OtherPart, Reference},
        has_role,
    },
    walk,
};

/// The maximum number of values in a part that is explained as a whole.
const MAX_VALUES: usize = 1000;

/// Reports the errors in `value`, which is known to be invalid.
pub(super) fn explain(
    validator: &Validator,
    schema: &Value,
    value: &Value,
    sink: &mut impl MessageSink,
) {
    let part = SchemaPart {
        schema,
        value,
        path: "",
        place: "",
    };
    if is_small(value) {
        report(validator, part, sink);
        if !sink.has_any() {
            sink.whole(part);
        }
        return;
    }
    if walk::forbidden_reference(schema).is_some() {
        // The schema of a part may reference the whole schema, and would be meaningless by itself.
        return sink.whole(part);
    }
    let mut explainer = Explainer {
        dialect: schema.get("$schema"),
        validators: HashMap::new(),
        sink,
    };
    explainer.part(part);
    if !sink.has_any() {
        sink.whole(part);
    }
}

fn is_small(value: &Value) -> bool {
    fn fits(value: &Value, budget: &mut usize) -> bool {
        let Some(rest) = budget.checked_sub(1) else {
            return false;
        };
        *budget = rest;
        match value {
            Value::Array(items) => items.iter().all(|item| fits(item, budget)),
            Value::Object(fields) => fields.values().all(|field| fits(field, budget)),
            _ => true,
        }
    }
    fits(value, &mut MAX_VALUES.clone())
}

fn report(validator: &Validator, part: SchemaPart<'_>, sink: &mut impl MessageSink) {
    for error in validator.iter_errors(part.value) {
        if sink.is_full() {
            return;
        }
        sink.error(part, &error);
    }
}

struct Explainer<'a, S> {
    /// The `$schema` of the whole schema.
    dialect: Option<&'a Value>,
    /// By the place of their schema in the whole schema.
    validators: HashMap<String, Option<Validator>>,
    sink: &'a mut S,
}

impl<S: MessageSink> Explainer<'_, S> {
    fn part(&mut self, part: SchemaPart<'_>) {
        if self.sink.is_full() {
            return;
        }
        let schema = part.schema.as_object();
        // The schema of each part depends on nothing but the part's name or index.
        let is_simple = schema.is_some_and(|schema| {
            let mut keywords = schema.keys();
            !keywords.any(|it| has_role(it, &[Condition, Form, OtherPart, Reference]))
        });
        match (schema, part.value) {
            _ if is_small(part.value) => {
                self.compile(part.place, || part.schema.clone());
                match self.validators.get(part.place) {
                    Some(Some(validator)) => report(validator, part, self.sink),
                    _ => self.sink.whole(part),
                }
            }
            // Before draft 2020-12, a list in `items` has one schema for each index.
            (Some(schema), Value::Array(items))
                if is_simple && !schema.get("items").is_some_and(Value::is_array) =>
            {
                self.report_own_errors(part, &without_items(schema));
                self.items(part, schema, items);
            }
            (Some(schema), Value::Object(fields)) if is_simple => {
                self.report_own_errors(part, &without_fields(schema));
                self.fields(part, schema, fields);
            }
            _ => self.sink.whole(part),
        }
    }

    /// Reports the errors of the part itself, regardless of its contents.
    fn report_own_errors(&mut self, part: SchemaPart<'_>, own: &Value) {
        let place = format!("{} itself", part.place);
        self.compile(&place, || own.clone());
        if let Some(Some(validator)) = self.validators.get(&place) {
            report(validator, part, self.sink);
        }
    }

    fn items(&mut self, part: SchemaPart<'_>, schema: &Map<String, Value>, items: &[Value]) {
        let Some(schema) = schema.get("items") else {
            return;
        };
        let place = format!("{}/items", part.place);
        for (index, value) in items.iter().enumerate() {
            if self.sink.is_full() {
                return;
            }
            if !self.is_valid(&place, schema, value) {
                self.part(SchemaPart {
                    schema,
                    value,
                    path: &format!("{}[{index}]", part.path),
                    place: &place,
                });
            }
        }
    }

    fn fields(
        &mut self,
        part: SchemaPart<'_>,
        schema: &Map<String, Value>,
        fields: &Map<String, Value>,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema
            .get("additionalProperties")
            .filter(|it| it.is_object());
        for (name, value) in fields {
            if self.sink.is_full() {
                return;
            }
            let named = properties.and_then(|it| it.get(name));
            let (schema, place) = match (named, others) {
                (Some(schema), _) => (
                    schema,
                    format!("{}/properties/{}", part.place, escape(name)),
                ),
                (None, Some(schema)) => (schema, format!("{}/additionalProperties", part.place)),
                (None, None) => continue,
            };
            if !self.is_valid(&place, schema, value) {
                self.part(SchemaPart {
                    schema,
                    value,
                    path: &joined(part.path, name),
                    place: &place,
                });
            }
        }
    }

    fn is_valid(&mut self, place: &str, schema: &Value, value: &Value) -> bool {
        self.compile(place, || schema.clone());
        let validator = self.validators.get(place).and_then(Option::as_ref);
        validator.is_none_or(|validator| validator.is_valid(value))
    }

    fn compile(&mut self, place: &str, schema: impl FnOnce() -> Value) {
        if self.validators.contains_key(place) {
            return;
        }
        let mut schema = schema();
        if let (Some(dialect), Some(object)) = (self.dialect, schema.as_object_mut()) {
            object.insert("$schema".into(), dialect.clone());
        }
        let validator = validator_of(&schema).ok();
        self.validators.insert(place.to_owned(), validator);
    }
}

/// Escapes a name for a JSON pointer. RFC 6901, section 3.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn without_items(schema: &Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    schema.shift_remove("items");
    Value::Object(schema)
}

/// The schema with any value allowed for each field.
fn without_fields(schema: &Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (_, property) in properties {
            *property = Value::Bool(true);
        }
    }
    if let Some(others @ Value::Object(_)) = schema.get_mut("additionalProperties") {
        *others = Value::Bool(true);
    }
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tool::schema::Schema;

    #[test]
    fn every_invalid_value_has_an_error() {
        let named = json!({"properties": {"additionalProperties": false}});
        // The value has the first form, and a property that only the other one declares.
        let forms = json!({
            "oneOf": [
                {"properties": {"a": true}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            ],
            "unevaluatedProperties": false,
        });
        let no_form = "Must be one of the forms that the tool's definition describes";
        let not_allowed = ("additionalProperties", "Is not allowed");
        for (schema, value, (name, message)) in [
            (&named, json!({"additionalProperties": 1}), not_allowed),
            (
                &named,
                json!({"additionalProperties": {"a": 1}}),
                not_allowed,
            ),
            (&forms, json!({"a": 1, "b": 2}), ("input", no_form)),
        ] {
            let schema = Schema::from_value(schema.clone());
            let expected = [(name.to_owned(), message.to_owned())];
            assert_eq!(
                schema.check(&value, "input"),
                Ok(Err(expected.into())),
                "{value}"
            );
        }
    }

    /// The schema of a part may reference the whole schema, and would be meaningless by itself.
    #[test]
    fn a_large_value_under_a_schema_with_references_is_reported_as_a_whole() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}});
        let schema = Schema::from_value(json!({
            "type": "object", "$defs": {"node": node},
            "properties": {"nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }));
        let mut nodes = vec![json!({"next": {}}); 2000];
        let valid = json!({"nodes": nodes});
        assert_eq!(schema.check(&valid, "input"), Ok(Ok(())));
        nodes[500] = json!(1);
        let errors = schema.check(&json!({"nodes": nodes}), "input").unwrap();
        let whole = [(
            "input".to_owned(),
            "Does not satisfy the tool's definition".to_owned(),
        )];
        assert_eq!(errors, Err(whole.into()));
        let places = schema.rejecting_keywords(&json!({"nodes": nodes})).unwrap();
        assert_eq!(places.unwrap(), ["the schema as a whole"]);
    }
}
