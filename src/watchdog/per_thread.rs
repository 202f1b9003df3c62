//! Clients with connections, which belong to the thread that opened them.

use std::sync::{Mutex, PoisonError, atomic::Ordering::Acquire};

use super::REPLACEMENTS;

/// A client that is created on first use, and again after its thread was replaced: the connections
/// of a blocked thread respond to nobody.
pub(crate) struct PerThread<T>(Mutex<Option<(usize, T)>>);

impl<T: Clone> PerThread<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(crate) fn get(&self, create: impl FnOnce() -> T) -> T {
        let replacements = REPLACEMENTS.load(Acquire);
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some((created, client)) if *created == replacements => client.clone(),
            _ => current.insert((replacements, create())).1.clone(),
        }
    }
}
