//! Decoding of an input that satisfies its schema into its type.
//!
//! A type may reject a value by a rule that its schema does not state, or that no validator knows.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Path;

use super::schema::{self, ParameterErrors};

/// The place of a value that its type rejects. The error's own text may quote the value and is not
/// kept. Only the range of an integer type is taken from it: published schemas omit nothing else.
pub(super) struct DecodeError {
    path: Path,
    range: Option<String>,
}

/// Decodes a value that satisfies its type's schema.
pub(super) fn decode<T: DeserializeOwned>(value: Value) -> Result<T, DecodeError> {
    serde_path_to_error::deserialize(value).map_err(|error: serde_path_to_error::Error<_>| {
        DecodeError {
            path: error.path().clone(),
            range: range_in(error.inner()),
        }
    })
}

impl DecodeError {
    /// The error of the parameter, which names the form that the input's schema expects.
    pub(super) fn explained(self, schema: &Value) -> ParameterErrors {
        let path = self.path.to_string();
        let path = if path == "." { "input".into() } else { path };
        let message = self.range;
        let message = message.or_else(|| schema::expected_form(schema, &self.path));
        let message = message.unwrap_or_else(|| "Is not valid".into());
        ParameterErrors::from([(path, message)])
    }
}

fn range_in(error: &serde_json::Error) -> Option<String> {
    let text = error.to_string();
    let (_, expected) = text.rsplit_once(", expected ")?;
    let (nonzero, name) = match expected.strip_prefix("a nonzero ") {
        Some(name) => (" other than 0", name),
        None => ("", expected),
    };
    let (least, most) = schema::range_of(name)?;
    Some(format!(
        "Must be an integer between {least} and {most}{nonzero}"
    ))
}
