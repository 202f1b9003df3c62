//! JSON Schemas of inputs and outputs, built on first use.
//!
//! Start-up must not pay for tools that are not called: a tool holds a function that builds its
//! schema, and the schema compiles its validator on first use.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use serde_json::Value;

use crate::{ParameterErrors, fast_check, integers, nulls, validation::Validator, walk};

/// A schema and, after the first check, its validator.
pub struct Schema {
    /// Builds the schema from a type. `None` for a schema that was not derived.
    derive: Option<fn() -> Value>,
    /// Tools of the same type share it.
    compiled: OnceLock<Arc<CompiledSchema>>,
}

struct CompiledSchema {
    value: Value,
    /// True if the schema contains integers; then `1.0` must reach the tool as `1`.
    has_integers: bool,
    /// True if a text must have the `format` that its schema names.
    asserts_formats: bool,
    /// True if [`fast_check`] knows all keywords of the schema.
    has_fast_check: bool,
    validator: OnceLock<Result<Validator, String>>,
}

impl Schema {
    /// Returns the schema that `derive` builds from a type.
    pub fn of_type(derive: fn() -> Value) -> Self {
        Self {
            derive: Some(derive),
            compiled: OnceLock::new(),
        }
    }

    /// Returns a schema that is known only at run time.
    #[must_use]
    pub fn from_value(schema: Value) -> Self {
        Self {
            derive: None,
            compiled: Arc::new(CompiledSchema::new(schema)).into(),
        }
    }

    /// Makes `format` an annotation, as in a foreign document.
    pub fn annotate_formats(&mut self) {
        if let Some(compiled) = self.compiled.get_mut().and_then(Arc::get_mut) {
            compiled.asserts_formats = false;
        }
    }

    /// Returns the schema as it is published.
    pub fn value(&self) -> &Value {
        &self.compiled().value
    }

    /// Returns true for a hand-written schema that is read as draft 7 although it does not say so.
    pub fn is_draft_7_literal(&self) -> bool {
        let value = self.value();
        let is_literal = self.derive.is_none() && value.get("$schema").is_none();
        is_literal && !walk::uses_newer_keywords(value)
    }

    /// Checks that the schema is a JSON Schema. The error is the reason why it is not.
    pub fn compile(&self) -> Result<(), &str> {
        self.validator().map(drop)
    }

    fn validator(&self) -> Result<&Validator, &str> {
        let compiled = self.compiled();
        let new = || Validator::of(&compiled.value, compiled.asserts_formats);
        let validator = compiled.validator.get_or_init(new);
        validator.as_ref().map_err(String::as_str)
    }

    /// Checks a value. The inner error lists the invalid parameters, and errors of the value as a
    /// whole under the name `root`.
    pub fn check(&self, value: &Value, root: &str) -> Result<Result<(), ParameterErrors>, &str> {
        Ok(match self.rejecting(value)? {
            Some(validator) => Err(validator.messages(self.value(), value, root)),
            None => Ok(()),
        })
    }

    /// Returns JSON pointers to the first few keywords that reject a value. Unlike messages, they
    /// reveal nothing that only the value contains. `None` for a valid value.
    pub fn rejecting_keywords(&self, value: &Value) -> Result<Option<Vec<String>>, &str> {
        let validator = self.rejecting(value)?;
        Ok(validator.map(|it| it.rejecting_keywords(self.value(), value)))
    }

    /// Returns the validator, if it rejects a value.
    fn rejecting(&self, value: &Value) -> Result<Option<&Validator>, &str> {
        if self.compiled().has_fast_check && fast_check::is_valid(self.value(), value) {
            return Ok(None);
        }
        let validator = self.validator()?;
        Ok((!validator.is_valid(value)).then_some(validator))
    }

    /// Turns whole floats into integers if the schema contains integers: JSON Schema accepts `1.0`
    /// as an integer, but `i64`'s deserializer does not.
    pub fn normalize(&self, value: &mut Value) {
        if self.compiled().has_integers {
            // Adding 0.0 turns `-0.0`, which no integer represents, into `0.0` and changes nothing
            // else.
            integers::write_integers(value, |float| integers::exact_integer(float + 0.0));
        }
    }

    /// Removes each optional property that is `null` although its schema does not allow it: models
    /// in strict mode always send every property.
    pub fn drop_optional_nulls(&self, value: &mut Value) {
        nulls::drop_optional_nulls(self.value(), value);
    }

    fn compiled(&self) -> &CompiledSchema {
        self.compiled
            .get_or_init(|| of_type(self.derive.expect("only derived schemas are built later")))
    }
}

impl CompiledSchema {
    fn new(value: Value) -> Self {
        Self {
            has_integers: walk::any_type(&value, "integer"),
            asserts_formats: true,
            has_fast_check: fast_check::knows(&value),
            validator: OnceLock::new(),
            value,
        }
    }
}

/// The schemas of types, by the addresses of the functions that derive them: a program has as many
/// as its source code names. Functions that share an address derive the same schema.
static OF_TYPES: Mutex<BTreeMap<usize, Arc<CompiledSchema>>> = Mutex::new(BTreeMap::new());

/// Returns the schema of a type, derived once for all tools that have it.
fn of_type(derive: fn() -> Value) -> Arc<CompiledSchema> {
    let known = || OF_TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = known().get(&(derive as usize)) {
        return Arc::clone(schema);
    }
    // Not while the lock is held: a type may describe itself by other tools' schemas.
    let schema = Arc::new(CompiledSchema::new(derive()));
    Arc::clone(known().entry(derive as usize).or_insert(schema))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_floats_become_integers_only_if_the_schema_contains_integers() {
        let schema = Schema::from_value(json!({"type": "object", "properties": {
            "n": {"type": "array", "items": {"type": "integer"}}}}));
        let mut value = json!({"n": [1.0, -3.0, -0.0, 2.5, 1e300]});
        schema.normalize(&mut value);
        assert_eq!(value, json!({"n": [1, -3, 0, 2.5, 1e300]}));

        let schema = Schema::from_value(json!({"properties": {"n": {"type": "number"}}}));
        let mut value = json!({"n": 1.0});
        schema.normalize(&mut value);
        assert_eq!(value, json!({"n": 1.0}));
    }
}
