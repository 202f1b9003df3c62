//! The reason why a document cannot become tools.

use std::fmt;

/// A document, or a choice of its operations, that cannot become tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenApiError(String);

impl OpenApiError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for OpenApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenApiError {}
