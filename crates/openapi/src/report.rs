//! The report on the operations of a document, which names each one that was left out.

use std::fmt;

/// The result of converting a document's operations.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The number of operations in the document.
    pub operations: usize,
    /// The number of those that were chosen.
    pub chosen: usize,
    /// The chosen operations that are no tools, with the reasons.
    pub left_out: Vec<Note>,
    /// Warnings about the generated tools.
    pub notes: Vec<Note>,
}

/// A sentence about an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The method and the path: `GET /pets/{id}`.
    pub operation: String,
    /// The sentence, without a period.
    pub text: String,
}

impl Note {
    pub(crate) fn new(operation: String, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { operation, text }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.text)
    }
}
