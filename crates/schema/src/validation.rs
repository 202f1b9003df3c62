//! Validation with `jsonschema`, which knows every keyword and explains what is invalid.
//!
//! It collects all errors before it returns the first, each with the branches that it tried: a
//! megabyte of invalid items would become hundreds of megabytes. So a large value gets its first
//! error only, and none under a schema with branches.

mod branches;
mod message;

use jsonschema::{Draft, ValidationError};
use serde_json::Value;

use super::{
    ParameterErrors,
    vocabulary::{Role, has_role},
    walk,
};
use message::MessageCollector;

/// The maximum number of values in a value whose errors are all collected.
const MAX_VALUES: usize = 1000;

/// The maximum number of places, which is enough to find the mistake.
const MAX_PLACES: usize = 5;

/// A compiled schema.
pub(crate) struct Validator(jsonschema::Validator);

impl Validator {
    /// Compiles a schema, whose formats are rules or annotations. The error is the reason why it is
    /// invalid.
    pub(super) fn of(schema: &Value, asserts_formats: bool) -> Result<Self, String> {
        let mut options = jsonschema::options().should_validate_formats(asserts_formats);
        if schema.get("$schema").is_none() {
            options = options.with_draft(draft_for(schema));
        }
        let validator = options.build(schema).map_err(|error| error.to_string());
        validator.map(Self)
    }

    /// Returns true for a valid value. Called only for values that [`fast_check`](super::fast_check)
    /// has not accepted.
    pub(super) fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// Returns JSON pointers to the keywords that reject a value.
    pub(super) fn rejecting_keywords(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut places = Vec::new();
        for error in self.errors(schema, value) {
            let place = error.schema_path().to_string();
            if places.len() < MAX_PLACES && !places.contains(&place) {
                places.push(place);
            }
        }
        if places.is_empty() {
            places.push("the schema as a whole".to_owned());
        }
        places
    }

    /// Returns the messages for the errors in `value`, which is known to be invalid, by parameter;
    /// errors of the value as a whole are under the name `root`.
    pub(super) fn messages(&self, schema: &Value, value: &Value, root: &str) -> ParameterErrors {
        let mut collector = MessageCollector {
            schema,
            value,
            messages: ParameterErrors::new(),
        };
        for error in self.errors(schema, value) {
            collector.add(&error);
        }
        let mut messages = collector.messages;
        let of_whole = match messages.remove("") {
            None if messages.is_empty() => Some(message::of_whole(schema)),
            message => message,
        };
        messages.extend(of_whole.map(|message| (root.to_owned(), message)));
        messages
    }

    fn errors<'a>(&'a self, schema: &Value, value: &'a Value) -> Vec<ValidationError<'a>> {
        if is_small(value, &mut MAX_VALUES.clone()) {
            self.0.iter_errors(value).collect()
        } else if walk::keywords(schema).any(|it| has_role(it, &[Role::Branch])) {
            Vec::new()
        } else {
            self.0.validate(value).err().into_iter().collect()
        }
    }
}

/// Returns true if a value has at most as many values as are left.
fn is_small(value: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else {
        return false;
    };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| is_small(item, left)),
        Value::Object(fields) => fields.values().all(|field| is_small(field, left)),
        _ => true,
    }
}

/// Returns draft 7 if it can express the schema: the first compilation in a process builds the
/// draft's meta-schema, and draft 7's takes a quarter of the time of 2020-12's.
fn draft_for(schema: &Value) -> Draft {
    if walk::uses_newer_keywords(schema) {
        Draft::Draft202012
    } else {
        Draft::Draft7
    }
}

#[cfg(test)]
mod tests;
