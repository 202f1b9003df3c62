//! Parts of a value that are explained one by one, and the trait that takes their errors.
//!
//! `explain` finds errors, `message` and `places` say them: with the shared types here, `explain`
//! knows neither of them.

use jsonschema::ValidationError;
use serde_json::Value;

use crate::text::clipped;

/// Names come from the caller and may be of any length; this is in bytes.
pub(super) const LONGEST_NAME: usize = 64;

/// A part of a value, and where it is.
#[derive(Clone, Copy)]
pub(super) struct SchemaPart<'a> {
    pub(super) schema: &'a Value,
    pub(super) value: &'a Value,
    /// The part's path, such as `items[2].sku`; empty for the whole.
    pub(super) path: &'a str,
    /// The schema's place in the whole schema, as a JSON pointer.
    pub(super) place: &'a str,
}

/// Takes what is found.
pub(super) trait MessageSink {
    /// An error of a part.
    fn error(&mut self, part: SchemaPart<'_>, error: &ValidationError<'_>);

    /// A part that is wrong in a way that costs too much to tell.
    fn whole(&mut self, part: SchemaPart<'_>);

    /// Whether something was found.
    fn has_any(&self) -> bool;

    /// Whether nothing more is wanted.
    fn is_full(&self) -> bool;
}

/// The path of a property below another path.
pub(crate) fn joined(path: &str, name: &str) -> String {
    let name = clipped(name, LONGEST_NAME);
    if path.is_empty() {
        name.into_owned()
    } else {
        format!("{path}.{name}")
    }
}
