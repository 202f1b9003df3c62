//! What ends a server, and what stores say besides what they hold.

use std::{fmt, time::Duration};

/// What ends [`serve`](crate::serve): a taken port, a definition that is wrong, a platform that does
/// not answer.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Why a store does not do what it was asked. Its text names what to do about it, and no value.
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
    /// The server may not do it. `detail` names the permission that is missing.
    pub fn denied(detail: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Denied, detail)
    }

    /// The store is asked too often.
    pub fn throttled(detail: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Throttled, detail)
    }

    /// The store cannot be reached or does not answer as it should.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Unavailable, detail)
    }

    /// What is there cannot be read.
    pub fn undecodable(detail: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Undecodable, detail)
    }

    /// There is no room for more.
    pub(crate) fn full(detail: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Full, detail)
    }

    /// Whether it is there, and has no room.
    pub(crate) fn is_full(&self) -> bool {
        self.kind == StoreErrorKind::Full
    }

    pub(crate) fn no_answer(limit: Duration) -> Self {
        let ms = limit.as_millis();
        Self::unavailable(format!("no answer within {ms} ms"))
    }

    fn new(kind: StoreErrorKind, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { kind, detail }
    }

    /// Whether the same may go well in a moment.
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
