//! The search for the errors in a value, for no more than can be reported.
//!
//! The validator collects all errors before it returns the first, each with the branches that it
//! tried: a megabyte of invalid items becomes hundreds of megabytes. So it gets only small parts.
//! In a large value, the invalid parts are searched for one by one, along the keywords that assign
//! schemas to parts, until there are enough errors.

use std::{collections::HashMap, rc::Rc};

use serde_json::Value;

use super::{
    Validator,
    message::{MessageCollector, SchemaPart},
};
use crate::{
    json::JsonObject,
    text::joined,
    tool::schema::{
        ParameterErrors,
        expected::property_of,
        vocabulary::{
            Role::{Branch, Condition, OtherPart, Part, Reference},
            has_role,
        },
        walk,
    },
};

/// The maximum number of values in a part that is explained as a whole.
const MAX_VALUES: usize = 1000;

/// The maximum number of places, which is enough to find the mistake.
const MAX_PLACES: usize = 5;

impl Validator {
    /// Returns JSON pointers to the keywords that reject a value.
    pub(in crate::tool::schema) fn rejecting_keywords(&self, value: &Value) -> Vec<String> {
        let mut places = Vec::new();
        if !is_small(value) {
            places.push("the schema as a whole".to_owned());
            return places;
        }
        for error in self.0.iter_errors(value) {
            let place = error.schema_path().to_string();
            if places.len() < MAX_PLACES && !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// Returns the messages for the errors in `value`, which is known to be invalid, by parameter;
    /// errors of the value as a whole are under the name `root`.
    pub(in crate::tool::schema) fn messages(
        &self,
        schema: &Value,
        value: &Value,
        root: &str,
    ) -> ParameterErrors {
        let path = "";
        let part = SchemaPart {
            schema,
            value,
            path,
        };
        let mut collector = MessageCollector::default();
        if is_small(value) {
            report(self, part, &mut collector);
        } else if walk::forbidden_reference(schema).is_none() {
            let mut explainer = Explainer {
                dialect: schema.get("$schema"),
                asserts_formats: self.1,
                validators: HashMap::new(),
                collector: &mut collector,
            };
            explainer.part(part);
        }
        // The schema of a part may reference the whole schema, and would be meaningless by itself.
        if collector.errors.is_empty() {
            collector.whole(part);
        }
        let mut errors = collector.errors;
        if let Some(message) = errors.remove("") {
            errors.insert(root.into(), message);
        }
        errors
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

fn report(validator: &Validator, part: SchemaPart<'_>, collector: &mut MessageCollector) {
    for error in validator.0.iter_errors(part.value) {
        if collector.is_full {
            return;
        }
        collector.error(part, &error);
    }
}

struct Explainer<'a> {
    /// The `$schema` of the whole schema.
    dialect: Option<&'a Value>,
    asserts_formats: bool,
    /// By the address of their schema in the whole schema.
    validators: HashMap<(*const Value, Extent), Option<Rc<Validator>>>,
    collector: &'a mut MessageCollector,
}

/// How much of a part's schema a validator checks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Extent {
    Whole,
    /// The part itself, whatever is in it.
    Own,
}

impl Explainer<'_> {
    fn part(&mut self, part: SchemaPart<'_>) {
        if self.collector.is_full {
            return;
        }
        let schema = part.schema.as_object();
        // The schema of each part depends on nothing but the part's name or index.
        let is_simple = schema.is_some_and(|schema| {
            let mut keywords = schema.keys();
            !keywords.any(|it| has_role(it, &[Condition, Branch, OtherPart, Reference]))
        });
        match (schema, part.value) {
            _ if is_small(part.value) => match self.validator(part.schema, Extent::Whole) {
                Some(validator) => report(&validator, part, self.collector),
                None => self.collector.whole(part),
            },
            // Before draft 2020-12, a list in `items` has one schema for each index.
            (Some(schema), Value::Array(items))
                if is_simple && !schema.get("items").is_some_and(Value::is_array) =>
            {
                self.report_own_errors(part);
                for (index, value) in items.iter().enumerate() {
                    let path = format!("{}[{index}]", part.path);
                    self.inner(schema.get("items"), value, &path);
                }
            }
            (Some(_), Value::Object(fields)) if is_simple => {
                self.report_own_errors(part);
                for (name, value) in fields {
                    // `false` is reported as an error of the whole.
                    let inner = property_of(part.schema, name);
                    let inner = inner.filter(|it| it.is_object());
                    self.inner(inner, value, &joined(part.path, name));
                }
            }
            _ => self.collector.whole(part),
        }
    }

    /// Reports the errors of the part itself, regardless of its contents.
    fn report_own_errors(&mut self, part: SchemaPart<'_>) {
        if let Some(validator) = self.validator(part.schema, Extent::Own) {
            report(&validator, part, self.collector);
        }
    }

    /// Reports the errors of what is inside a part.
    fn inner(&mut self, schema: Option<&Value>, value: &Value, path: &str) {
        let Some(schema) = schema.filter(|_| !self.collector.is_full) else {
            return;
        };
        let validator = self.validator(schema, Extent::Whole);
        if validator.is_some_and(|it| !it.is_valid(value)) {
            self.part(SchemaPart {
                schema,
                value,
                path,
            });
        }
    }

    /// Returns a schema's validator. `None` if the schema cannot stand by itself.
    fn validator(&mut self, schema: &Value, extent: Extent) -> Option<Rc<Validator>> {
        let key = (std::ptr::from_ref(schema), extent);
        if let Some(known) = self.validators.get(&key) {
            return known.clone();
        }
        let mut schema = schema.clone();
        if let Some(object) = schema.as_object_mut() {
            if extent == Extent::Own {
                allow_parts(object);
            }
            object.extend(self.dialect.map(|it| ("$schema".to_owned(), it.clone())));
        }
        let validator = Validator::of(&schema, self.asserts_formats);
        let validator = validator.ok().map(Rc::new);
        self.validators.insert(key, validator.clone());
        validator
    }
}

/// Allows any value for each part that a schema allows.
fn allow_parts(schema: &mut JsonObject) {
    walk::each_inner(schema, &mut |keyword, inner| {
        let is_forbidding = keyword == "additionalProperties" && *inner == false;
        if has_role(keyword, &[Part]) && !is_forbidding {
            *inner = Value::Bool(true);
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tool::schema::Schema;

    #[test]
    fn every_invalid_value_has_an_error() {
        let named = json!({"properties": {"additionalProperties": false}});
        // The value has the first branch, and a property that only the other one declares.
        let branches = json!({
            "oneOf": [
                {"properties": {"a": true}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            ],
            "unevaluatedProperties": false,
        });
        let no_branch = "Must be one of the forms that the tool's definition describes";
        let not_allowed = ("additionalProperties", "Is not allowed");
        for (schema, value, (name, message)) in [
            (&named, json!({"additionalProperties": 1}), not_allowed),
            (
                &named,
                json!({"additionalProperties": {"a": 1}}),
                not_allowed,
            ),
            (&branches, json!({"a": 1, "b": 2}), ("input", no_branch)),
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
