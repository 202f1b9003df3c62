//! A value that the processes of a search share.

use std::sync::{Arc, Mutex};

#[derive(Default)]
pub(crate) struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.0.lock().expect("nothing panics inside a change");
        change(&mut value)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
