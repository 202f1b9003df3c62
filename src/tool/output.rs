//! The output of a tool.

mod finite;

use serde::Serialize;
use serde_json::{Value, value::RawValue};

pub(crate) use finite::{exact_integer, to_value};

/// A tool's output.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Output {
    /// The value that the tool returned.
    Value(Value),
    /// The recorded JSON of an earlier call's value, replayed verbatim.
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
