//! The limits of responses, in bytes and in JSON values.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use serde_json::Value;

use super::ClientError;
use crate::json::{self, JsonError};

/// What a response, or all pages of a list together, may still have.
#[derive(Debug)]
pub(super) struct ResponseBudget {
    limit: usize,
    bytes: AtomicUsize,
    values: AtomicUsize,
    /// The reason why a text was not read although it is JSON.
    rejected: OnceLock<String>,
}

impl ResponseBudget {
    /// A budget of this many bytes, with as many values as a request of this size.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            bytes: limit.into(),
            values: json::max_values(limit).into(),
            rejected: OnceLock::new(),
        })
    }

    /// Takes bytes that have arrived.
    pub(super) fn take(&self, bytes: usize) -> Result<(), ClientError> {
        let left = self.bytes.load(Relaxed).checked_sub(bytes);
        let limit = self.limit;
        self.bytes
            .store(left.ok_or(ClientError::TooLarge { limit })?, Relaxed);
        Ok(())
    }

    /// Reads a JSON text, and takes its values.
    pub(super) fn read(&self, json: &[u8]) -> Result<Value, ClientError> {
        let read = json::read_counted(json, self.values.load(Relaxed));
        let (value, left) = read.map_err(|error| match error {
            JsonError::Syntax(error) => {
                ClientError::Unreadable(format!("it is not valid JSON: {error}"))
            }
            JsonError::Rejected(sentence) => {
                ClientError::Unreadable(self.rejected.get_or_init(|| sentence).clone())
            }
        })?;
        self.values.store(left, Relaxed);
        Ok(value)
    }

    /// The error of a text that was not read although it is JSON.
    pub(super) fn rejection(&self) -> Option<ClientError> {
        self.rejected.get().cloned().map(ClientError::Unreadable)
    }
}
