//! The values that this process has read from its stores, which are redacted in all text.
//!
//! Tools may keep them in memory between calls, and tasks and threads may outlive their call. The
//! call that such text belongs to is not known, so only these values are found in it.

use std::{
    collections::VecDeque,
    sync::{OnceLock, PoisonError, RwLock},
};

use super::redaction::Redaction;
use crate::Secret;

/// The maximum number of values. A store may return another value on each read.
const MOST: usize = 500;

struct StoredSecrets {
    /// The oldest first.
    values: VecDeque<Secret>,
    /// Built when a text is searched for the values.
    redaction: OnceLock<Redaction>,
}

static STORED: RwLock<StoredSecrets> = RwLock::new(StoredSecrets {
    values: VecDeque::new(),
    redaction: OnceLock::new(),
});

/// Adds a value. If there are too many, the oldest is dropped until it is read again.
pub(crate) fn remember(secret: &Secret) {
    let stored = STORED.read().unwrap_or_else(PoisonError::into_inner);
    if stored.values.iter().any(|it| it.is(secret)) {
        return;
    }
    drop(stored);
    let mut stored = STORED.write().unwrap_or_else(PoisonError::into_inner);
    stored.values.push_back(secret.clone());
    if stored.values.len() > MOST {
        stored.values.pop_front();
    }
    stored.redaction = OnceLock::new();
}

/// The text without these values. `None` if it contains none.
pub(crate) fn redacted(text: &str) -> Option<String> {
    let stored = STORED.read().unwrap_or_else(PoisonError::into_inner);
    let redaction = stored
        .redaction
        .get_or_init(|| Redaction::of(&stored.values));
    redaction.redacted(text)
}
