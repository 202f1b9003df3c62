//! Parts of a value that are explained one by one, and the trait that receives their errors.
//!
//! `explain` finds errors; `message` and `places` report them. The shared types here keep `explain`
//! independent of both.

use jsonschema::ValidationError;
use serde_json::Value;

use crate::text::clipped;

/// The maximum length, in bytes, of a name in a message: names come from the caller and may be of
/// any length.
pub(super) const LONGEST_NAME: usize = 64;

/// A part of a value, with its schema and location.
#[derive(Clone, Copy)]
pub(super) struct SchemaPart<'a> {
    pub(super) schema: &'a Value,
    pub(super) value: &'a Value,
    /// The part's path, such as `items[2].sku`; empty for the whole.
    pub(super) path: &'a str,
    /// The schema's place in the whole schema, as a JSON pointer.
    pub(super) place: &'a str,
}

/// Receives errors as they are found.
pub(super) trait MessageSink {
    /// An error of a part.
    fn error(&mut self, part: SchemaPart<'_>, error: &ValidationError<'_>);

    /// An invalid part that would cost too much to explain in detail.
    fn whole(&mut self, part: SchemaPart<'_>);

    /// Returns `true` if any error was received.
    fn has_any(&self) -> bool;

    /// Returns `true` if no more errors are needed.
    fn is_full(&self) -> bool;
}

/// The path of the property `name` below `path`.
pub(crate) fn joined(path: &str, name: &str) -> String {
    let name = clipped(name, LONGEST_NAME);
    if path.is_empty() {
        name.into_owned()
    } else {
        format!("{path}.{name}")
    }
}
