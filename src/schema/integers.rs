//! Integers that JSON can say and this program cannot keep.

use serde_json::Value;

use super::{ParameterErrors, message::joined};

/// As many as are worth listing.
const MOST: usize = 100;

/// Names the numbers of an input that may have lost digits while they were read: what is beyond 64
/// bits has become a float.
pub(crate) fn check(input: &Value) -> Result<(), ParameterErrors> {
    let mut errors = ParameterErrors::new();
    collect(input, "", &mut errors);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

fn collect(value: &Value, path: &str, errors: &mut ParameterErrors) {
    /// From here on an integer does not fit into 64 bits with a sign.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if errors.len() >= MOST {
        return;
    }
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.abs() >= BEYOND {
                let message = "Must be an integer between -9223372036854775808 and \
                               18446744073709551615, or be written with an exponent";
                errors.insert(path.to_owned(), message.to_owned());
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{path}[{index}]"), errors);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                collect(field, &joined(path, name), errors);
            }
        }
        _ => {}
    }
}

/// The integers that a Rust type takes, by the words in which serde names it: `u8`, `i64`.
pub(crate) fn range_of(name: &str) -> Option<(i128, i128)> {
    Some(match name {
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => (i64::MIN.into(), i64::MAX.into()),
        "u8" => (u8::MIN.into(), u8::MAX.into()),
        "u16" => (u16::MIN.into(), u16::MAX.into()),
        "u32" => (u32::MIN.into(), u32::MAX.into()),
        "u64" | "usize" => (u64::MIN.into(), u64::MAX.into()),
        _ => return None,
    })
}
