//! The limits of definitions, which come from any server.
//!
//! References and unions repeat schemas: without limits, a definition of kilobytes could become a
//! list of gigabytes.

use std::cell::Cell;

use serde_json::Value;

/// The maximum size of a definition, and of what is copied for it.
pub(super) const LARGEST_DEFINITION: usize = 256 * 1024;
/// The maximum size of a tool in a list.
pub(super) const LARGEST_ITEM: usize = 1024 * 1024;
/// The maximum size of a list, and of what is copied for it.
pub(super) const LARGEST_LIST: usize = 16 * 1024 * 1024;

/// The size of the schemas that may still be copied for a tool.
pub(super) struct CopyBudget(Cell<usize>);

impl CopyBudget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Cell::new(bytes))
    }

    pub(super) fn left(&self) -> usize {
        self.0.get()
    }

    /// Takes the size of a schema from the budget. `None` if less is left; then nothing is left.
    pub(super) fn spend(&self, schema: &Value) -> Option<()> {
        if self.left() == 0 {
            return None;
        }
        let left = self.left().checked_sub(size_of(schema));
        self.0.set(left.unwrap_or(0));
        left.map(|_| ())
    }
}

/// Returns the approximate size of a value in bytes: its names and texts, and 20 bytes for each
/// value, of which a request may have as many.
pub(super) fn size_of(value: &Value) -> usize {
    20 + match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(size_of).sum(),
        Value::Object(object) => object
            .iter()
            .map(|(name, it)| name.len() + size_of(it))
            .sum(),
        _ => 0,
    }
}
