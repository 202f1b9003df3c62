//! Validation without the Cargo feature `validation`: what [`fast_check`] can tell.

use serde_json::Value;

use crate::{ParameterErrors, fast_check};

/// Treats every schema as valid, and every value whose schema [`fast_check`] does not know.
pub(crate) struct Validator {
    knows_schema: bool,
}

#[expect(
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "the same signatures as with the feature"
)]
impl Validator {
    pub(super) fn of(schema: &Value, _: bool) -> Result<Self, String> {
        let knows_schema = fast_check::knows(schema);
        Ok(Self { knows_schema })
    }

    /// Returns true for a value that is valid as far as is known. Called only for values that
    /// [`fast_check`] has not accepted.
    pub(super) fn is_valid(&self, _: &Value) -> bool {
        !self.knows_schema
    }

    pub(super) fn messages(&self, _: &Value, _: &Value, root: &str) -> ParameterErrors {
        let message = "Does not satisfy the tool's definition";
        [(root.to_owned(), message.to_owned())].into()
    }

    pub(super) fn rejecting_keywords(&self, _: &Value, _: &Value) -> Vec<String> {
        vec!["the schema as a whole".to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Schema, vocabulary::tests::deciding};

    #[test]
    fn a_value_is_invalid_only_if_the_fast_check_knows_its_schema() {
        let (known, unknown): (Vec<_>, Vec<_>) = deciding()
            .into_iter()
            .partition(|(_, schema, _)| fast_check::knows(schema));
        assert!(!known.is_empty() && !unknown.is_empty());
        let is_valid = |(_, schema, value): &(_, Value, Value)| {
            let schema = Schema::from_value(schema.clone());
            schema.check(value, "input").unwrap().is_ok()
        };
        assert!(!known.iter().any(is_valid));
        assert!(unknown.iter().all(is_valid));
        let invalid = Schema::from_value(json!({"type": "nonsense"}));
        assert!(invalid.compile().is_ok());
    }
}
