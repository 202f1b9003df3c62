//! A schema with the checks of the library.

use std::collections::BTreeMap;

use lambda_tools_core::tool::schema::{self, forbidden_reference};
use serde_json::Value;

/// The schema of a dynamic tool.
pub(crate) struct Schema(schema::Schema);

/// The result of a check.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The messages by parameter; `None` if the value is valid.
    pub(crate) messages: Option<BTreeMap<String, String>>,
    /// The keywords that reject the value; `None` if the value is valid.
    pub(crate) keywords: Option<Vec<String>>,
    /// The value as its tool would get it.
    pub(crate) normalized: Value,
}

impl Schema {
    /// Returns `None` for a schema that no toolkit accepts.
    pub(crate) fn new(value: Value) -> Option<Self> {
        if forbidden_reference(&value).is_some() {
            return None;
        }
        let schema = schema::Schema::from_value(value);
        schema.compile().is_ok().then_some(Self(schema))
    }

    /// Checks a value as it is.
    pub(crate) fn check(&self, value: &Value) -> Finding {
        let messages = self.0.check(value, "input").expect("the schema compiles");
        let keywords = self.0.rejecting_keywords(value);
        let mut normalized = value.clone();
        self.0.normalize(&mut normalized);
        Finding {
            messages: messages.err(),
            keywords: keywords.expect("the schema compiles"),
            normalized,
        }
    }

    /// Returns the value without the optional properties that are `null`.
    pub(crate) fn without_optional_nulls(&self, mut value: Value) -> Value {
        self.0.drop_optional_nulls(&mut value);
        value
    }
}
