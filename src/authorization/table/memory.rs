//! In the memory of this process.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use super::Item;
use crate::StoreError;

/// Who asks for challenges must not be able to fill the memory.
const MOST: usize = 10_000;

#[derive(Default)]
pub(crate) struct Memory(Mutex<HashMap<String, Item>>);

impl Memory {
    fn items(&self) -> MutexGuard<'_, HashMap<String, Item>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read(&self, id: &str) -> Option<Item> {
        self.items().get(id).cloned()
    }

    pub(super) fn write(
        &self,
        id: &str,
        item: Item,
        over: Option<u64>,
        now: SystemTime,
    ) -> Result<bool, StoreError> {
        let mut items = self.items();
        let known = items.get(id).filter(|item| item.expires_at > now);
        if known.map(|item| item.version) != over {
            return Ok(false);
        }
        if items.len() >= MOST && !items.contains_key(id) {
            items.retain(|_, item| item.expires_at > now);
            // What users have allowed finds its place whatever was asked for.
            if items.len() >= MOST && id.starts_with("challenge#") {
                let text = "more challenges and grants than this process keeps";
                return Err(StoreError::unavailable(text));
            }
        }
        items.insert(id.to_owned(), item);
        Ok(true)
    }

    pub(super) fn remove(&self, id: &str, version: u64) -> bool {
        let mut items = self.items();
        let is_it = items.get(id).is_some_and(|item| item.version == version);
        if is_it {
            items.remove(id);
        }
        is_it
    }
}
