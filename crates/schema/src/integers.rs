//! Floats that are integers: JSON Schema takes `1.0` for one, and the types of most languages do not.

use serde_json::Value;

/// Replaces floats that are integers, at every depth.
pub fn write_integers(value: &mut Value, integer_in: fn(f64) -> Option<i64>) {
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
pub fn exact_integer(float: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_negative_zero = float == 0.0 && float.is_sign_negative();
    if float.fract() == 0.0 && float.abs() <= EXACT && !is_negative_zero {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        return Some(float as i64);
    }
    None
}
