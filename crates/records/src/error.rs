//! The error of stores.

use std::{fmt, time::Duration};

/// The reason why a store operation failed. The text never contains a stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    kind: StoreErrorKind,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreErrorKind {
    Denied,
    Throttled,
    Unavailable,
    Full,
    Undecodable,
}

impl StoreError {
    /// Creates the error for a server without a permission, which `detail` names.
    pub fn denied(detail: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Denied, detail)
    }

    /// Creates the error for a store that receives too many requests.
    pub fn throttled(detail: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Throttled, detail)
    }

    /// Creates the error for a store that cannot be reached or responds incorrectly.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Unavailable, detail)
    }

    /// Creates the error for stored data that cannot be read.
    pub fn undecodable(detail: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Undecodable, detail)
    }

    /// Creates the error for a store without room.
    pub fn full(detail: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Full, detail)
    }

    /// Returns `true` if the store is reachable but has no room left.
    pub fn is_full(&self) -> bool {
        self.kind == StoreErrorKind::Full
    }

    /// Creates the error for a store that has not responded within this time.
    pub fn timed_out(limit: Duration) -> Self {
        let ms = limit.as_millis();
        Self::unavailable(format!("no response within {ms} ms"))
    }

    fn new(kind: StoreErrorKind, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { kind, detail }
    }

    /// Returns `true` if the same operation may soon succeed.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Full | StoreErrorKind::Throttled | StoreErrorKind::Unavailable
        )
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            StoreErrorKind::Denied => "access denied",
            StoreErrorKind::Throttled => "throttled",
            StoreErrorKind::Full => "the store is full",
            StoreErrorKind::Unavailable => "the store is not available",
            StoreErrorKind::Undecodable => "not decodable",
        };
        write!(f, "{what}: {}", self.detail)
    }
}

impl std::error::Error for StoreError {}
