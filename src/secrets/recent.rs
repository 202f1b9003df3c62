//! The secrets that the process used recently, for redacting text from outside of calls.
//!
//! A tool may leave behind a task or a thread that outlives its call, and that logs or panics with
//! the call's secret. The call cannot be identified, so the text is checked for all known secrets.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::{
        Arc, LazyLock, PoisonError, RwLock, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use super::redaction::{Redaction, Redactor, SHORTEST};
use crate::Secret;

/// The maximum number of known values, and the maximum size of their forms. Values from calls are
/// dropped before values from the store, and the least recently used first.
const MOST: usize = 1000;
const MOST_BYTES: usize = 16 << 20;

static RECENT: LazyLock<RecentSecrets> = LazyLock::new(|| RecentSecrets::new(MOST, MOST_BYTES));

/// The redactor of a secret, or `None` if the secret is too short. Also adds the secret to those
/// that are redacted outside of calls.
pub(crate) fn remember_secret(secret: &Secret) -> Option<Arc<Redactor>> {
    RECENT.remember_secret(secret, false)
}

/// Adds a secret from the server's store, which secrets from calls do not displace.
pub(crate) fn remember_stored(secret: &Secret) {
    RECENT.remember_secret(secret, true);
}

/// The text without any known secret. `None` if it contains none.
pub(crate) fn redacted(text: &str) -> Option<String> {
    RECENT.redacted(text)
}

/// The text without the secrets of the server's store. `None` if it contains none. Secrets from
/// other calls are not redacted; otherwise their callers could choose which words disappear from
/// this call's text.
pub(crate) fn without_stored_secrets(text: &str) -> Option<String> {
    RECENT.without_stored_secrets(text)
}

struct RecentSecrets {
    most: usize,
    most_bytes: usize,
    uses: AtomicU64,
    known: RwLock<KnownSecrets>,
}

struct KnownSecrets {
    values: HashMap<SecretValue, KnownSecret>,
    bytes: usize,
    from_store: Redaction,
    from_calls: Redaction,
    removed: usize,
}

struct KnownSecret {
    redactor: Arc<Redactor>,
    last_use: AtomicU64,
    is_stored: bool,
}

/// A secret that can be compared and hashed by its value.
struct SecretValue(Secret);

impl Hash for SecretValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.expose().hash(state);
    }
}

impl PartialEq for SecretValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }
}

impl Eq for SecretValue {}

impl RecentSecrets {
    fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            most,
            most_bytes,
            uses: AtomicU64::default(),
            known: RwLock::new(KnownSecrets {
                values: HashMap::new(),
                bytes: 0,
                from_store: Redaction::default(),
                from_calls: Redaction::with_room(1 << 14),
                removed: 0,
            }),
        }
    }

    fn remember_secret(&self, secret: &Secret, is_stored: bool) -> Option<Arc<Redactor>> {
        if secret.expose().trim().len() < SHORTEST {
            return None;
        }
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        let value = SecretValue(secret.clone());
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let existing = known.values.get(&value);
        if let Some(existing) = existing.filter(|it| it.is_stored || !is_stored) {
            existing.last_use.store(now, Ordering::Relaxed);
            return Some(Arc::clone(&existing.redactor));
        }
        drop(known);
        let redactor = Arc::new(Redactor::new(secret.expose(), SHORTEST));
        let mut known = self.write_lock();
        let redactor = known.add(value, redactor, now, is_stored);
        known.shrink(self.most, self.most_bytes);
        drop(known);
        Some(redactor)
    }

    fn redacted(&self, text: &str) -> Option<String> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let redacted = known.from_store.redacted(text);
        known
            .from_calls
            .redacted(redacted.as_deref().unwrap_or(text))
            .or(redacted)
    }

    fn without_stored_secrets(&self, text: &str) -> Option<String> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.from_store.redacted(text)
    }

    /// A poisoned lock is harmless: nothing panics halfway while it is held.
    fn write_lock(&self) -> RwLockWriteGuard<'_, KnownSecrets> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownSecrets {
    fn add(
        &mut self,
        value: SecretValue,
        redactor: Arc<Redactor>,
        now: u64,
        is_stored: bool,
    ) -> Arc<Redactor> {
        // A call may have brought the value before, or another call may have added it meanwhile.
        if let Some(secret) = self.values.get_mut(&value) {
            if is_stored && !secret.is_stored {
                secret.is_stored = true;
                self.from_calls.remove(&secret.redactor);
                self.from_store.add(&secret.redactor);
            }
            return Arc::clone(&secret.redactor);
        }
        self.bytes += redactor.size();
        let redaction = if is_stored {
            &mut self.from_store
        } else {
            &mut self.from_calls
        };
        redaction.add(&redactor);
        let secret = KnownSecret {
            redactor: Arc::clone(&redactor),
            last_use: AtomicU64::new(now),
            is_stored,
        };
        self.values.insert(value, secret);
        redactor
    }

    fn shrink(&mut self, most: usize, most_bytes: usize) {
        while self.values.len() > most || self.bytes > most_bytes && self.values.len() > 1 {
            let last_use = |(_, secret): &(&SecretValue, &KnownSecret)| {
                (secret.is_stored, secret.last_use.load(Ordering::Relaxed))
            };
            let Some((oldest, _)) = self.values.iter().min_by_key(last_use) else {
                return;
            };
            let oldest = SecretValue(oldest.0.clone());
            if let Some(secret) = self.values.remove(&oldest) {
                self.bytes -= secret.redactor.size();
                self.from_store.remove(&secret.redactor);
                self.from_calls.remove(&secret.redactor);
                self.removed += 1;
            }
            if self.removed.is_multiple_of(most) {
                self.from_store.tidy();
                self.from_calls.tidy();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::redaction::tests::thread_time;

    fn value(number: usize) -> Secret {
        Secret::from(format!("a-value-{number:04}"))
    }

    #[test]
    fn the_least_recently_used_value_is_dropped_first() {
        let recent = RecentSecrets::new(3, usize::MAX);
        for number in [0, 1, 2, 0, 3] {
            assert!(recent.remember_secret(&value(number), false).is_some());
        }
        let is_known = |number: usize| recent.redacted(value(number).expose()).is_some();
        assert_eq!([0, 1, 2, 3].map(is_known), [true, false, true, true]);
    }

    #[test]
    fn the_number_of_known_values_is_bounded() {
        let recent = RecentSecrets::new(10, usize::MAX);
        for number in 0..1000 {
            recent.remember_secret(&value(number), false);
            recent.remember_secret(&value(number), false);
        }
        let known = recent.write_lock();
        assert_eq!(known.values.len(), 10);
        let secrets = known.values.values();
        let bytes: usize = secrets.map(|secret| secret.redactor.size()).sum();
        assert_eq!(known.bytes, bytes);
        assert_eq!(
            known.from_calls.redacted("a-value-0989 a-value-0990"),
            Some("a-value-0989 [secret]".to_owned())
        );
    }

    #[test]
    fn the_total_size_of_known_values_is_bounded() {
        let recent = RecentSecrets::new(1000, 100_000);
        for number in 0..10 {
            recent.remember_secret(
                &Secret::from(format!("{number}{}", "k".repeat(4000))),
                false,
            );
        }
        assert!((1..4).contains(&recent.write_lock().values.len()));
    }

    #[test]
    fn secrets_from_calls_do_not_displace_those_of_the_store() {
        let recent = RecentSecrets::new(3, usize::MAX);
        recent.remember_secret(&value(0), true);
        recent.remember_secret(&value(1), false);
        // Known first from a call, and then from the store.
        recent.remember_secret(&value(1), true);
        for number in 2..100 {
            recent.remember_secret(&value(number), false);
        }
        let is_known = |number: usize| recent.redacted(value(number).expose()).is_some();
        assert_eq!([0, 1, 98, 99].map(is_known), [true, true, false, true]);
        // A call's text is not checked for secrets that other calls brought.
        let is_stored = |number: usize| {
            recent
                .without_stored_secrets(value(number).expose())
                .is_some()
        };
        assert_eq!([0, 1, 99].map(is_stored), [true, true, false]);
    }

    #[test]
    fn a_secret_of_any_shape_is_added_quickly() {
        let started = thread_time();
        let many: Vec<_> = (0..2000).map(|number| format!("a{number:07}")).collect();
        for secret in [many.join(":"), "/".repeat(16_000), "\\".repeat(8_000)] {
            let recent = RecentSecrets::new(1000, usize::MAX);
            recent.remember_secret(&Secret::from(&*secret), false);
            let text = format!("x {secret} y {}", "\\".repeat(4000));
            let redacted = recent.redacted(&text).unwrap();
            assert!(!redacted.contains(&secret), "{}", redacted.len());
            let bytes = recent.write_lock().bytes;
            assert!(bytes < 2 << 20, "{bytes}");
        }
        assert!(thread_time().saturating_sub(started).as_secs() < 5);
    }

    #[test]
    fn a_displaced_value_is_dropped() {
        let recent = RecentSecrets::new(1, usize::MAX);
        let first = value(1);
        let weak = Arc::downgrade(&first.0);
        recent.remember_secret(&first, false);
        drop(first);
        assert_eq!(weak.strong_count(), 1);
        recent.remember_secret(&value(2), false);
        assert_eq!(weak.strong_count(), 0);
    }
}
