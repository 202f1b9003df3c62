//! The places in a schema that reject a value.

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::{
    explain,
    part::{MessageSink, SchemaPart},
};

/// The maximum number of places, which is enough to find the mistake.
const MAX_PLACES: usize = 5;

pub(super) fn of_all(validator: &Validator, schema: &Value, value: &Value) -> Vec<String> {
    let mut places = Places::default();
    explain::explain(validator, schema, value, &mut places);
    places.0
}

#[derive(Default)]
struct Places(Vec<String>);

impl Places {
    fn add(&mut self, place: String) {
        if !self.0.contains(&place) {
            self.0.push(place);
        }
    }
}

impl MessageSink for Places {
    fn error(&mut self, part: SchemaPart<'_>, error: &ValidationError<'_>) {
        self.add(format!("{}{}", part.place, error.schema_path()));
    }

    fn whole(&mut self, part: SchemaPart<'_>) {
        let place = match part.place {
            "" => "the schema as a whole",
            place => place,
        };
        self.add(place.to_owned());
    }

    fn has_any(&self) -> bool {
        !self.0.is_empty()
    }

    fn is_full(&self) -> bool {
        self.0.len() >= MAX_PLACES
    }
}
