//! JSON Schemas of inputs and outputs, made when first needed.
//!
//! Start-up must not pay for tools that are not called: a tool holds a function that makes its
//! schema, and the schema holds a place for its validator.

mod derive;
mod explain;
mod forms;
mod integers;
mod message;
mod part;
mod places;
mod walk;

use std::{collections::BTreeMap, sync::OnceLock};

use jsonschema::{Draft, Validator};
use serde_json::{Map, Number, Value};

use crate::tool::output;

pub(crate) use derive::{of_input, of_output};
pub(crate) use integers::{range_of, unkept};
pub(crate) use part::joined;
pub(crate) use walk::{forbidden_reference, undescribed_properties};

/// What is wrong with an input: a message for each bad parameter, by its path (`address.street`,
/// `items[2].sku`).
pub(crate) type ParameterErrors = BTreeMap<String, String>;

/// A schema and, once something is checked against it, its validator.
pub(crate) struct Schema {
    source: SchemaSource,
    /// Boxed: a tool that is never called should take little memory.
    made: OnceLock<Box<CompiledSchema>>,
}

enum SchemaSource {
    Type(fn() -> Value),
    Given(Box<Value>),
}

struct CompiledSchema {
    value: Value,
    /// Whether some number must be an integer; then `1.0` must reach the tool as `1`.
    has_integers: bool,
    validator: OnceLock<Result<Validator, String>>,
}

impl Schema {
    /// The schema that `make` derives from a type.
    pub(crate) fn of_type(make: fn() -> Value) -> Self {
        Self {
            source: SchemaSource::Type(make),
            made: OnceLock::new(),
        }
    }

    /// A schema that is known only at run time.
    pub(crate) fn given(schema: Value) -> Self {
        Self {
            source: SchemaSource::Given(Box::new(schema)),
            made: OnceLock::new(),
        }
    }

    /// The schema as it is published.
    pub(crate) fn value(&self) -> &Value {
        &self.made().value
    }

    /// Whether the schema can be compiled; if not, why.
    pub(crate) fn compile(&self) -> Result<&Validator, &str> {
        let made = self.made();
        let validator = made.validator.get_or_init(|| validator_of(&made.value));
        validator.as_ref().map_err(String::as_str)
    }

    /// Checks a value; the inner error lists every bad parameter, and what is wrong with the value
    /// as a whole under the name `root`.
    pub(crate) fn check(
        &self,
        value: &Value,
        root: &str,
    ) -> Result<Result<(), ParameterErrors>, &str> {
        let validator = self.compile()?;
        if validator.is_valid(value) {
            return Ok(Ok(()));
        }
        Ok(Err(message::of_all(validator, self.value(), value, root)))
    }

    /// Where in the schema a value does not satisfy it: JSON pointers to the keywords that refuse
    /// it, a few of them. Unlike messages they name nothing that only the value knows. None for a
    /// value that is right.
    pub(crate) fn refused_by(&self, value: &Value) -> Result<Option<Vec<String>>, &str> {
        let validator = self.compile()?;
        let is_valid = validator.is_valid(value);
        Ok((!is_valid).then(|| places::of_all(validator, self.value(), value)))
    }

    /// Writes whole floats as integers where the schema knows integers: JSON Schema counts `1.0`
    /// as one, `i64`'s deserializer does not.
    pub(crate) fn normalize(&self, value: &mut Value) {
        if self.made().has_integers {
            integers_from_whole_floats(value);
        }
    }

    fn made(&self) -> &CompiledSchema {
        self.made.get_or_init(|| {
            let value = match &self.source {
                SchemaSource::Type(make) => make(),
                SchemaSource::Given(value) => Value::clone(value),
            };
            Box::new(CompiledSchema {
                has_integers: walk::any_type(&value, "integer"),
                validator: OnceLock::new(),
                value,
            })
        })
    }
}

fn validator_of(schema: &Value) -> Result<Validator, String> {
    let mut options = jsonschema::options().should_validate_formats(true);
    if schema.get("$schema").is_none() {
        options = options.with_draft(draft_for(schema));
    }
    options.build(schema).map_err(|error| error.to_string())
}

/// Draft 7 where it says everything the schema says: the first compilation in a process builds
/// its draft's meta-schema, and draft 7's takes a quarter of the time of 2020-12's.
fn draft_for(schema: &Value) -> Draft {
    if walk::uses_newer_keywords(schema) {
        Draft::Draft202012
    } else {
        Draft::Draft7
    }
}

fn integers_from_whole_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(integer) = integer_in(number) {
                *number = integer;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(integers_from_whole_floats),
        Value::Object(map) => map_values(map).for_each(integers_from_whole_floats),
        _ => {}
    }
}

fn map_values(map: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    map.iter_mut().map(|(_, value)| value)
}

fn integer_in(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    // The integer 0 has no sign: adding it turns `-0.0` into `0.0`, and nothing else into another.
    output::whole(float + 0.0).map(Number::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_floats_become_integers_only_where_integers_are_known() {
        let schema = Schema::given(json!({"type": "object", "properties": {
            "n": {"type": "array", "items": {"type": "integer"}}}}));
        let mut value = json!({"n": [1.0, -3.0, -0.0, 2.5, 1e300]});
        schema.normalize(&mut value);
        assert_eq!(value, json!({"n": [1, -3, 0, 2.5, 1e300]}));

        let schema = Schema::given(json!({"properties": {"n": {"type": "number"}}}));
        let mut value = json!({"n": 1.0});
        schema.normalize(&mut value);
        assert_eq!(value, json!({"n": 1.0}));
    }

    #[test]
    fn the_draft_is_the_oldest_that_says_all_of_it() {
        let tuple = json!({"properties": {"pair": {"prefixItems": [{"type": "string"}]}}});
        assert_eq!(draft_for(&tuple), Draft::Draft202012);
        let plain = json!({"properties": {"prefixItems": {"type": "string"}}});
        assert_eq!(draft_for(&plain), Draft::Draft7);
    }

    #[test]
    fn a_schema_that_is_none_is_an_error_and_no_panic() {
        let schema = Schema::given(json!({"type": "nonsense"}));
        assert!(schema.compile().is_err());
        assert!(schema.check(&json!(1), "input").is_err());
    }
}
