//! The secrets that the process has had lately, for texts outside of calls.
//!
//! A tool may leave a task or a thread behind that outlives its call, and logs or panics with the
//! call's secret. Nobody can tell whose it is; it is held to all that are known.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::{
        Arc, LazyLock, PoisonError, RwLock, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use super::redaction::{PLACEHOLDER, Redaction, Redactor, SHORTEST};
use crate::Secret;

/// How many values are known at most, and how many bytes their forms may have. Those that were not
/// used for the longest time go first.
const MOST: usize = 1000;
const MOST_BYTES: usize = 16 << 20;

static RECENT: LazyLock<RecentSecrets> = LazyLock::new(|| RecentSecrets::new(MOST, MOST_BYTES));

/// What a secret is found by; none for one that is too short. From now on it is looked for outside
/// of calls as well.
pub(crate) fn redactor_of(secret: &Secret) -> Option<Arc<Redactor>> {
    RECENT.redactor_of(secret, false)
}

/// The same of a secret from the server's own store, which is not forgotten for any that calls
/// bring.
pub(crate) fn remember_stored(secret: &Secret) {
    RECENT.redactor_of(secret, true);
}

/// The text without any secret that is known. `None` where there are none in it.
pub(crate) fn redacted(text: &str) -> Option<String> {
    RECENT.redacted(text)
}

/// The text without those of the server's own store. What other calls bring is left out: their
/// callers could choose what this one's texts may say.
pub(crate) fn without_stored(text: &str) -> Option<String> {
    RECENT.without_stored(text)
}

struct RecentSecrets {
    most: usize,
    most_bytes: usize,
    uses: AtomicU64,
    known: RwLock<RecentSecret>,
}

struct RecentSecret {
    values: HashMap<SecretValue, LastUse>,
    bytes: usize,
    /// Those of the store, and those that calls have brought.
    stored: Redaction,
    given: Redaction,
    removed: usize,
}

struct LastUse {
    redactor: Arc<Redactor>,
    last: AtomicU64,
    is_stored: bool,
}

/// Equal where the values are.
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
            known: RwLock::new(RecentSecret {
                values: HashMap::new(),
                bytes: 0,
                stored: Redaction::default(),
                given: Redaction::with_room(1 << 14),
                removed: 0,
            }),
        }
    }

    fn redactor_of(&self, secret: &Secret, is_stored: bool) -> Option<Arc<Redactor>> {
        if secret.expose().trim().len() < SHORTEST {
            return None;
        }
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        let value = SecretValue(secret.clone());
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let used = known.values.get(&value);
        if let Some(used) = used.filter(|used| used.is_stored || !is_stored) {
            used.last.store(now, Ordering::Relaxed);
            return Some(Arc::clone(&used.redactor));
        }
        drop(known);
        let redactor = Arc::new(Redactor::new(secret.expose(), SHORTEST));
        let mut known = self.locked();
        let redactor = known.add(value, redactor, now, is_stored);
        known.shrink(self.most, self.most_bytes);
        drop(known);
        Some(redactor)
    }

    fn redacted(&self, text: &str) -> Option<String> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let stored = known.stored.redacted(text);
        known
            .given
            .redacted(stored.as_deref().unwrap_or(text))
            .or(stored)
    }

    fn without_stored(&self, text: &str) -> Option<String> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.stored.redacted(text)
    }

    /// Nothing in here panics half way through.
    fn locked(&self) -> RwLockWriteGuard<'_, RecentSecret> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecentSecret {
    fn add(
        &mut self,
        value: SecretValue,
        redactor: Arc<Redactor>,
        now: u64,
        is_stored: bool,
    ) -> Arc<Redactor> {
        // A call may have brought it before, or another call have been faster.
        let placeholder = Arc::from(PLACEHOLDER);
        if let Some(used) = self.values.get_mut(&value) {
            if is_stored && !used.is_stored {
                used.is_stored = true;
                self.given.remove(&used.redactor);
                self.stored.add(&used.redactor, &placeholder);
            }
            return Arc::clone(&used.redactor);
        }
        self.bytes += redactor.size();
        let redaction = if is_stored {
            &mut self.stored
        } else {
            &mut self.given
        };
        redaction.add(&redactor, &placeholder);
        let used = LastUse {
            redactor: Arc::clone(&redactor),
            last: AtomicU64::new(now),
            is_stored,
        };
        self.values.insert(value, used);
        redactor
    }

    fn shrink(&mut self, most: usize, most_bytes: usize) {
        while self.values.len() > most || self.bytes > most_bytes && self.values.len() > 1 {
            let last = |(_, used): &(&SecretValue, &LastUse)| {
                (used.is_stored, used.last.load(Ordering::Relaxed))
            };
            let Some((oldest, _)) = self.values.iter().min_by_key(last) else {
                return;
            };
            let oldest = SecretValue(oldest.0.clone());
            if let Some(used) = self.values.remove(&oldest) {
                self.bytes -= used.redactor.size();
                self.stored.remove(&used.redactor);
                self.given.remove(&used.redactor);
                self.removed += 1;
            }
            if self.removed.is_multiple_of(most) {
                self.stored.tidy();
                self.given.tidy();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: usize) -> Secret {
        Secret::from(format!("a-value-{number:04}"))
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        let recent = RecentSecrets::new(3, usize::MAX);
        for number in [0, 1, 2, 0, 3] {
            assert!(recent.redactor_of(&value(number), false).is_some());
        }
        let is_known = |number: usize| recent.redacted(value(number).expose()).is_some();
        assert_eq!([0, 1, 2, 3].map(is_known), [true, false, true, true]);
    }

    #[test]
    fn any_number_of_values_leaves_a_bounded_number_behind() {
        let recent = RecentSecrets::new(10, usize::MAX);
        for number in 0..1000 {
            recent.redactor_of(&value(number), false);
            recent.redactor_of(&value(number), false);
        }
        let known = recent.locked();
        assert_eq!(known.values.len(), 10);
        let redactors = known.values.values();
        let bytes: usize = redactors.map(|used| used.redactor.size()).sum();
        assert_eq!(known.bytes, bytes);
        assert_eq!(
            known.given.redacted("a-value-0989 a-value-0990"),
            Some("a-value-0989 [secret]".to_owned())
        );
    }

    #[test]
    fn large_values_count_for_more() {
        let recent = RecentSecrets::new(1000, 100_000);
        for number in 0..10 {
            recent.redactor_of(
                &Secret::from(format!("{number}{}", "k".repeat(4000))),
                false,
            );
        }
        assert!((1..4).contains(&recent.locked().values.len()));
    }

    #[test]
    fn what_calls_bring_pushes_nothing_of_the_store_out() {
        let recent = RecentSecrets::new(3, usize::MAX);
        recent.redactor_of(&value(0), true);
        recent.redactor_of(&value(1), false);
        // Known from a call, and then from the store.
        recent.redactor_of(&value(1), true);
        for number in 2..100 {
            recent.redactor_of(&value(number), false);
        }
        let is_known = |number: usize| recent.redacted(value(number).expose()).is_some();
        assert_eq!([0, 1, 98, 99].map(is_known), [true, true, false, true]);
        // And nobody's text is held to what others bring.
        let is_stored = |number: usize| recent.without_stored(value(number).expose()).is_some();
        assert_eq!([0, 1, 99].map(is_stored), [true, true, false]);
    }

    #[test]
    fn a_secret_of_any_shape_is_ready_in_no_time() {
        let begun = std::time::Instant::now();
        let many: Vec<_> = (0..2000).map(|number| format!("a{number:07}")).collect();
        for secret in [many.join(":"), "/".repeat(16_000), "\\".repeat(8_000)] {
            let recent = RecentSecrets::new(1000, usize::MAX);
            recent.redactor_of(&Secret::from(&*secret), false);
            let text = format!("x {secret} y {}", "\\".repeat(4000));
            let redacted = recent.redacted(&text).unwrap();
            assert!(!redacted.contains(&secret), "{}", redacted.len());
            assert!(recent.locked().bytes < 2 << 20, "{}", recent.locked().bytes);
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    }

    #[test]
    fn a_value_that_is_no_longer_known_is_dropped() {
        let recent = RecentSecrets::new(1, usize::MAX);
        let first = value(1);
        let weak = Arc::downgrade(&first.0);
        recent.redactor_of(&first, false);
        drop(first);
        assert_eq!(weak.strong_count(), 1);
        recent.redactor_of(&value(2), false);
        assert_eq!(weak.strong_count(), 0);
    }
}
