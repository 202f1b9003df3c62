//! The output of a tool.

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

/// Converts a tool's output to JSON. Whole floats are written as integers, as in the specification's
/// examples: `15`, not `15.0`. A float that is not finite becomes `null`.
pub(crate) fn to_value<T: Serialize>(output: &T) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(output)?;
    write_integers(&mut value, exact_integer);
    Ok(value)
}

/// Replaces floats that are integers, at every depth.
pub(crate) fn write_integers(value: &mut Value, integer_in: fn(f64) -> Option<i64>) {
    let inner = |it: &mut Value| write_integers(it, integer_in);
    match value {
        Value::Array(items) => items.iter_mut().for_each(inner),
        Value::Object(fields) => fields.values_mut().for_each(inner),
        Value::Number(number) if number.is_f64() => {
            if let Some(integer) = number.as_f64().and_then(integer_in) {
                *value = integer.into();
            }
        }
        _ => {}
    }
}

/// Returns the integer value of a whole float, up to where floats can represent every integer.
pub(crate) fn exact_integer(float: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_negative_zero = float == 0.0 && float.is_sign_negative();
    if float.fract() == 0.0 && float.abs() <= EXACT && !is_negative_zero {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        return Some(float as i64);
    }
    None
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
