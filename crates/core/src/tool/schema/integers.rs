//! Integers that JSON can express but a program cannot represent.

use serde_json::Value;

use super::ParameterErrors;

/// The numbers of an input that lost digits when its text was decoded.
#[derive(Default)]
pub struct RoundedNumbers {
    /// The paths of the integers without an exponent that lost digits, such as `items[2].count`.
    pub lossy_integers: Vec<String>,
    /// A copy of the input, if it has numbers that were rounded to integers: in the copy they have
    /// a fraction, so that an integer's schema rejects them.
    pub with_fractions: Option<Value>,
}

/// Returns the errors for integers that would lose digits, by their paths.
pub fn lossy_integers(paths: &[String]) -> ParameterErrors {
    let message = "Must be an integer between -9223372036854775808 and 18446744073709551615, or be \
                   written with an exponent";
    let errors = paths.iter().map(|path| (path.clone(), message.to_owned()));
    errors.collect()
}

/// Returns the range of a Rust integer type, by serde's name for it: `u8`, `i64`.
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
