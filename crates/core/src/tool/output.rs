//! The output of a tool.

use lambda_tools_schema::integers::{exact_integer, write_integers};
use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

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
    ///
    /// # Panics
    /// Never: every JSON value can be written.
    #[must_use]
    pub fn into_json(self) -> Self {
        match self {
            Self::Value(value) => {
                Self::Json(to_raw_value(&value).expect("JSON can be written as JSON"))
            }
            json @ Self::Json(_) => json,
        }
    }

    /// Returns true for `null`, the output of a tool that returns nothing.
    pub fn is_null(&self) -> bool {
        match self {
            Self::Value(value) => value.is_null(),
            Self::Json(json) => json.get() == "null",
        }
    }

    /// Returns true for an object.
    pub fn is_object(&self) -> bool {
        match self {
            Self::Value(value) => value.is_object(),
            Self::Json(json) => json.get().starts_with('{'),
        }
    }
}

/// Converts a tool's output to JSON. Whole floats are written as integers, as in the specification's
/// examples: `15`, not `15.0`. A float that is not finite becomes `null`.
pub(crate) fn to_value<T: Serialize>(output: &T) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(output)?;
    write_integers(&mut value, exact_integer);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_floats_are_written_as_integers() {
        let written = to_value(&json!({"a": [15.0, -1.0, 0.0, 0.5, 1e300]})).unwrap();
        assert_eq!(written, json!({"a": [15, -1, 0, 0.5, 1e300]}));
        assert_eq!(to_value(&15_f32).unwrap().to_string(), "15");
        assert_eq!(to_value(&-0.0).unwrap().to_string(), "-0.0");
        assert_eq!(to_value(&f64::NAN).unwrap(), json!(null));
    }
}
