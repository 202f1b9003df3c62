//! The values that this process has read from its stores, which are redacted in all text.
//!
//! Tools may keep them in memory between calls, and tasks and threads may outlive their call. The
//! call that such text belongs to is not known, so only these values are found in it.

use std::{
    collections::VecDeque,
    sync::{OnceLock, PoisonError, RwLock},
};

use super::redaction::{MOST_BYTES, Redaction};
use crate::Secret;

/// The maximum number of values, which together have at most `MOST_BYTES`. A store may return another
/// value on each read.
const MOST: usize = 500;

struct StoredSecrets {
    /// The newest first.
    values: VecDeque<Secret>,
    /// Built when a text is searched for the values.
    redaction: OnceLock<Redaction>,
}

static STORED: RwLock<StoredSecrets> = RwLock::new(StoredSecrets::new());

/// Adds a value. If there are too many, the oldest is dropped until it is read again.
pub fn remember(secret: &Secret) {
    let mut stored = STORED.write().unwrap_or_else(PoisonError::into_inner);
    if !stored.values.iter().any(|it| it.is(secret)) {
        stored.add(secret.clone());
    }
}

/// Removes a value that is used no more, so that others have its room.
pub fn forget(secret: &Secret) {
    let mut stored = STORED.write().unwrap_or_else(PoisonError::into_inner);
    stored.values.retain(|it| !it.is(secret));
    stored.redaction = OnceLock::new();
}

/// Returns the text without these values, and without those of a call. `None` if it contains none.
pub fn redacted(text: &str, own: Option<&Redaction>) -> Option<String> {
    let stored = STORED.read().unwrap_or_else(PoisonError::into_inner);
    stored.redacted(text, own)
}

impl StoredSecrets {
    const fn new() -> Self {
        Self {
            values: VecDeque::new(),
            redaction: OnceLock::new(),
        }
    }

    fn add(&mut self, secret: Secret) {
        self.values.push_front(secret);
        let mut room = MOST_BYTES;
        self.values.retain(|it| {
            let rest = room.checked_sub(it.expose().len());
            room = rest.unwrap_or(room);
            rest.is_some()
        });
        self.values.truncate(MOST);
        self.redaction = OnceLock::new();
    }

    fn redacted(&self, text: &str, own: Option<&Redaction>) -> Option<String> {
        let redaction = self.redaction.get_or_init(|| Redaction::of(&self.values));
        redaction.redacted_with(own, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_values_is_bounded() {
        let mut stored = StoredSecrets::new();
        for number in 0..=MOST {
            stored.add(format!("a-value-{number:04}").into());
        }
        let redacted = stored.redacted("a-value-0000 a-value-0001 a-value-0500", None);
        assert_eq!(redacted.as_deref(), Some("a-value-0000 [secret] [secret]"));
        stored.add("a-value-0000".into());
        let redacted = stored.redacted("a-value-0000", None);
        assert_eq!(redacted.as_deref(), Some("[secret]"));
        // One that is too large is dropped, and not the others.
        stored.add("x".repeat(MOST_BYTES + 1).into());
        assert_eq!(stored.values.len(), MOST);
    }
}
