//! What a tool gives.

mod finite;

use serde::Serialize;
use serde_json::{Value, value::RawValue};

pub(crate) use finite::{to_value, whole};

/// What a tool gave.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Output {
    /// The value.
    Value(Value),
    /// Its JSON, as it was written before.
    Json(Box<RawValue>),
}

impl Output {
    pub(crate) fn is_null(&self) -> bool {
        match self {
            Self::Value(value) => value.is_null(),
            Self::Json(json) => json.get() == "null",
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        match self {
            Self::Value(value) => value.is_object(),
            Self::Json(json) => json.get().starts_with('{'),
        }
    }
}
