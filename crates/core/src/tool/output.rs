//! The output of a tool.

mod finite;

use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

pub(crate) use finite::exact_integer;
pub(crate) use finite::to_value;

/// A tool's output.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Output {
    /// The value that the tool returned.
    Value(Value),
    /// The JSON of a value that is recorded, or was recorded by an earlier call.
    Json(Box<RawValue>),
}

impl Output {
    /// Converts the output to text, for several readers: the value is written only once.
    pub fn into_json(self) -> Self {
        match self {
            Self::Value(value) => {
                Self::Json(to_raw_value(&value).expect("JSON can be written as JSON"))
            }
            json @ Self::Json(_) => json,
        }
    }

    pub fn is_null(&self) -> bool {
        match self {
            Self::Value(value) => value.is_null(),
            Self::Json(json) => json.get() == "null",
        }
    }

    pub fn is_object(&self) -> bool {
        match self {
            Self::Value(value) => value.is_object(),
            Self::Json(json) => json.get().starts_with('{'),
        }
    }
}
