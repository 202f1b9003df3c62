//! Decoding of an input that satisfies its schema into its type.
//!
//! A type may reject a value by a rule that its schema does not state, or that no validator knows.

use std::any::Any;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Path;

use crate::{ParameterErrors, expected};

/// The place of a value that its type rejects, and the error's own text, which may quote the value.
/// Only the range of an integer type and the name of a missing field are taken from it: published
/// schemas omit little else.
///
/// For the fields of a flattened struct, the place is the struct that contains it: serde reads
/// these fields from a buffer, whose errors have no path.
pub struct DecodeError {
    path: Path,
    text: String,
}

/// Decodes a value that satisfies its type's schema. Tracking the path takes three times as
/// long, so that is done only for a value that is not valid.
pub fn decode<T: DeserializeOwned>(value: Value) -> Result<T, DecodeError> {
    if let Ok(decoded) = T::deserialize(&value) {
        return Ok(decoded);
    }
    serde_path_to_error::deserialize(value).map_err(|error: serde_path_to_error::Error<_>| {
        DecodeError {
            path: error.path().clone(),
            text: error.inner().to_string(),
        }
    })
}

/// Decodes an input, which stays as it is if its type is [`Value`].
pub fn decode_input<T: DeserializeOwned + 'static>(input: Value) -> Result<T, DecodeError> {
    let mut input = Some(input);
    let unchanged = (&mut input as &mut dyn Any).downcast_mut::<Option<T>>();
    if let Some(unchanged) = unchanged.and_then(Option::take) {
        return Ok(unchanged);
    }
    decode(input.unwrap_or_default())
}

impl DecodeError {
    /// Returns the error of the parameter, which names the format that the input's schema expects.
    pub fn explained(self, schema: &Value) -> ParameterErrors {
        let properties = expected::declared_properties_at(schema, &self.path);
        let path = self.path.to_string();
        let is_root = path == ".";
        // A text of the tool's own may say the same of another name.
        if let Some(field) = missing_field_in(&self.text).filter(|it| properties.contains(it)) {
            let prefix = if is_root { String::new() } else { path + "." };
            return ParameterErrors::from([(prefix + field, "Is required".into())]);
        }
        let path = if is_root { "input".into() } else { path };
        let range = range_in(&self.text).map(|range| match properties.as_slice() {
            [] => format!("Must be {range}"),
            // The range is that of a field.
            _ => format!("Has a value that must be {range}"),
        });
        let message = range.or_else(|| expected::expected_format(schema, &self.path));
        let message = message.unwrap_or_else(|| "Is not valid".into());
        ParameterErrors::from([(path, message)])
    }
}

fn range_in(text: &str) -> Option<String> {
    let (_, expected) = text.rsplit_once(", expected ")?;
    let (nonzero, name) = match expected.strip_prefix("a nonzero ") {
        Some(name) => (" other than 0", name),
        None => ("", expected),
    };
    let (least, most) = range_of(name)?;
    Some(format!("an integer between {least} and {most}{nonzero}"))
}

/// Returns the range of a Rust integer type, by serde's name for it: `u8`, `i64`.
fn range_of(name: &str) -> Option<(i128, i128)> {
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

fn missing_field_in(text: &str) -> Option<&str> {
    text.strip_prefix("missing field `")?.strip_suffix('`')
}
