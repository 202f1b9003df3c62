//! Finding what is wrong with a value, and no more of it than can be told.
//!
//! The validator lists every error there is before it hands over the first, each with the forms
//! that were tried: a megabyte of wrong items becomes hundreds of them. So only a small part is
//! given to it at once. In a large value the parts that are wrong are looked for one by one, along
//! the keywords that say which schema is whose, until there are enough.

use std::collections::HashMap;

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::{
    part::{MessageSink, SchemaPart, joined},
    validator_of, walk,
};

/// Up to how many values a part is explained as a whole.
const AT_ONCE: usize = 1000;

/// Keywords under which the schema of a part is not simply the one of its name or place.
const COMPLICATED: [&str; 18] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "allOf",
    "anyOf",
    "dependencies",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Hands over what is wrong with `value`, which is known to be wrong.
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
        return hand_over(validator, part, sink);
    }
    if walk::forbidden_reference(schema).is_some() {
        // A part's schema may refer to what is elsewhere, and means nothing by itself.
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
    fn count(value: &Value, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else {
            return false;
        };
        *left = rest;
        match value {
            Value::Array(items) => items.iter().all(|item| count(item, left)),
            Value::Object(fields) => fields.values().all(|field| count(field, left)),
            _ => true,
        }
    }
    count(value, &mut AT_ONCE.clone())
}

fn hand_over(validator: &Validator, part: SchemaPart<'_>, sink: &mut impl MessageSink) {
    for error in validator.iter_errors(part.value) {
        if sink.is_full() {
            return;
        }
        sink.error(part, &error);
    }
}

struct Explainer<'a, S> {
    /// The `$schema` of the whole.
    dialect: Option<&'a Value>,
    /// By the place of their schema.
    validators: HashMap<String, Option<Validator>>,
    sink: &'a mut S,
}

impl<S: MessageSink> Explainer<'_, S> {
    fn part(&mut self, part: SchemaPart<'_>) {
        if self.sink.is_full() {
            return;
        }
        let schema = part.schema.as_object();
        let is_simple =
            schema.is_some_and(|schema| !COMPLICATED.iter().any(|it| schema.contains_key(*it)));
        match (schema, part.value) {
            _ if is_small(part.value) => {
                self.compile(part.place, || part.schema.clone());
                match self.validators.get(part.place) {
                    Some(Some(validator)) => hand_over(validator, part, self.sink),
                    _ => self.sink.whole(part),
                }
            }
            // Before draft 2020-12 a list of schemas is one for each place.
            (Some(schema), Value::Array(items))
                if is_simple && !schema.get("items").is_some_and(Value::is_array) =>
            {
                self.own_rules(part, &without_items(schema));
                self.items(part, schema, items);
            }
            (Some(schema), Value::Object(fields)) if is_simple => {
                self.own_rules(part, &without_fields(schema));
                self.fields(part, schema, fields);
            }
            _ => self.sink.whole(part),
        }
    }

    /// What is wrong with the part itself, whatever is in it.
    fn own_rules(&mut self, part: SchemaPart<'_>, own: &Value) {
        let place = format!("{} itself", part.place);
        self.compile(&place, || own.clone());
        if let Some(Some(validator)) = self.validators.get(&place) {
            hand_over(validator, part, self.sink);
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
                    format!("{}/properties/{}", part.place, escaped(name)),
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

/// A name in a JSON pointer. RFC 6901, 3.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn without_items(schema: &Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    schema.shift_remove("items");
    Value::Object(schema)
}

/// The same for any fields of these names.
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

    /// A part's schema may refer to what is elsewhere in the whole, and means nothing by itself.
    #[test]
    fn a_large_value_under_a_schema_with_references_is_told_as_a_whole() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}});
        let schema = Schema::given(json!({
            "type": "object", "$defs": {"node": node},
            "properties": {"nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }));
        let mut nodes = vec![json!({"next": {}}); 2000];
        let right = json!({"nodes": nodes});
        assert_eq!(schema.check(&right, "input"), Ok(Ok(())));
        nodes[500] = json!(1);
        let errors = schema.check(&json!({"nodes": nodes}), "input").unwrap();
        let whole = [(
            "input".to_owned(),
            "Does not satisfy the tool's definition".to_owned(),
        )];
        assert_eq!(errors, Err(whole.into()));
        let places = schema.refused_by(&json!({"nodes": nodes})).unwrap();
        assert_eq!(places.unwrap(), ["the schema as a whole"]);
    }
}
