//! The limits of responses, in bytes and in JSON values.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use lambda_tools_core::json::{self, JsonError};
use serde_json::Value;

use super::ClientError;

/// The budget that is left for a response, or for all pages of a list together.
#[derive(Debug)]
pub(super) struct ResponseBudget {
    limit: usize,
    bytes: AtomicUsize,
    values: AtomicUsize,
}

impl ResponseBudget {
    /// Creates a budget of this many bytes, with as many values as a request of this size.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            bytes: limit.into(),
            values: json::max_values(limit).into(),
        })
    }

    /// Rejects a response that names a length above the limit.
    pub(super) fn check_length(&self, length: Option<u64>) -> Result<(), ClientError> {
        let limit = self.limit;
        match length {
            Some(length) if length > limit as u64 => Err(ClientError::TooLarge { limit }),
            _ => Ok(()),
        }
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
    pub(super) fn read(&self, json: &[u8]) -> Result<Value, JsonError> {
        let (value, left) = json::read_counted(json, self.values.load(Relaxed))?;
        self.values.store(left, Relaxed);
        Ok(value)
    }
}

#[doc(hidden)]
impl From<JsonError> for ClientError {
    fn from(error: JsonError) -> Self {
        Self::Unreadable(match error {
            JsonError::Syntax(error) => format!("it is not valid JSON: {error}"),
            JsonError::Rejected(sentence) => sentence,
        })
    }
}
