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

static RECENT: LazyLock<Recent> = LazyLock::new(|| Recent::new(MOST, MOST_BYTES));

/// What a secret is found by; none for one that is too short. From now on it is looked for outside
/// of calls as well.
pub(crate) fn redactor_of(secret: &Secret) -> Option<Arc<Redactor>> {
    RECENT.redactor_of(secret)
}

/// The text without any secret that is known. `None` where there are none in it.
pub(crate) fn redacted(text: &str) -> Option<String> {
    RECENT.redacted(text)
}

struct Recent {
    most: usize,
    most_bytes: usize,
    uses: AtomicU64,
    known: RwLock<Known>,
}

struct Known {
    values: HashMap<Value, Used>,
    bytes: usize,
    redaction: Redaction,
    removed: usize,
}

struct Used {
    redactor: Arc<Redactor>,
    last: AtomicU64,
}

/// Equal where the values are.
struct Value(Secret);

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.expose().hash(state);
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }
}

impl Eq for Value {}

impl Recent {
    fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            most,
            most_bytes,
            uses: AtomicU64::default(),
            known: RwLock::new(Known {
                values: HashMap::new(),
                bytes: 0,
                redaction: Redaction::with_room(1 << 14),
                removed: 0,
            }),
        }
    }

    fn redactor_of(&self, secret: &Secret) -> Option<Arc<Redactor>> {
        if secret.expose().trim().len() < SHORTEST {
            return None;
        }
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        let value = Value(secret.clone());
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = known.values.get(&value) {
            used.last.store(now, Ordering::Relaxed);
            return Some(Arc::clone(&used.redactor));
        }
        drop(known);
        let redactor = Arc::new(Redactor::new(secret.expose(), SHORTEST));
        let mut known = self.locked();
        known.add(value, &redactor, now);
        known.shrink(self.most, self.most_bytes);
        drop(known);
        Some(redactor)
    }

    fn redacted(&self, text: &str) -> Option<String> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.redaction.redacted(text)
    }

    /// Nothing in here panics half way through.
    fn locked(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn add(&mut self, value: Value, redactor: &Arc<Redactor>, now: u64) {
        // Another call may have been faster.
        if self.values.contains_key(&value) {
            return;
        }
        self.bytes += redactor.size();
        self.redaction.add(redactor, &Arc::from(PLACEHOLDER));
        let used = Used {
            redactor: Arc::clone(redactor),
            last: AtomicU64::new(now),
        };
        self.values.insert(value, used);
    }

    fn shrink(&mut self, most: usize, most_bytes: usize) {
        while self.values.len() > most || self.bytes > most_bytes && self.values.len() > 1 {
            let last = |(_, used): &(&Value, &Used)| used.last.load(Ordering::Relaxed);
            let Some((oldest, _)) = self.values.iter().min_by_key(last) else {
                return;
            };
            let oldest = Value(oldest.0.clone());
            if let Some(used) = self.values.remove(&oldest) {
                self.bytes -= used.redactor.size();
                self.redaction.remove(&used.redactor);
                self.removed += 1;
            }
            if self.removed.is_multiple_of(most) {
                self.redaction.tidy();
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
        let recent = Recent::new(3, usize::MAX);
        for number in [0, 1, 2, 0, 3] {
            assert!(recent.redactor_of(&value(number)).is_some());
        }
        let is_known = |number: usize| recent.redacted(value(number).expose()).is_some();
        assert_eq!([0, 1, 2, 3].map(is_known), [true, false, true, true]);
    }

    #[test]
    fn any_number_of_values_leaves_a_bounded_number_behind() {
        let recent = Recent::new(10, usize::MAX);
        for number in 0..1000 {
            recent.redactor_of(&value(number));
            recent.redactor_of(&value(number));
        }
        let known = recent.locked();
        assert_eq!(known.values.len(), 10);
        let redactors = known.values.values();
        let bytes: usize = redactors.map(|used| used.redactor.size()).sum();
        assert_eq!(known.bytes, bytes);
        assert_eq!(
            known.redaction.redacted("a-value-0989 a-value-0990"),
            Some("a-value-0989 [secret]".to_owned())
        );
    }

    #[test]
    fn large_values_count_for_more() {
        let recent = Recent::new(1000, 100_000);
        for number in 0..10 {
            recent.redactor_of(&Secret::from(format!("{number}{}", "k".repeat(4000))));
        }
        assert!((1..4).contains(&recent.locked().values.len()));
    }

    #[test]
    fn a_value_that_is_no_longer_known_is_dropped() {
        let recent = Recent::new(1, usize::MAX);
        let first = value(1);
        let weak = Arc::downgrade(&first.0);
        recent.redactor_of(&first);
        drop(first);
        assert_eq!(weak.strong_count(), 1);
        recent.redactor_of(&value(2));
        assert_eq!(weak.strong_count(), 0);
    }
}
