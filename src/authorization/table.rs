//! Where challenges and grants are kept, encrypted.
//!
//! Every item has a version; who writes says which one has been read, so that of two at once one
//! wins.

#[cfg(feature = "dynamodb")]
mod dynamodb;
mod memory;

use std::{sync::Arc, time::SystemTime};

use serde::Serialize;

use crate::StoreError;

/// What can be kept in a table.
pub(super) trait Stored: Serialize {
    /// The namespace of the caller in whose share of a full table it is; none for what nothing
    /// may push out.
    fn owner(&self) -> Option<&str>;
}

/// What is kept under one id.
#[derive(Clone)]
pub(crate) struct Item {
    pub(super) version: u64,
    /// The fingerprint of the key that it is encrypted with.
    pub(super) key_id: String,
    pub(super) sealed: Vec<u8>,
    pub(super) expires_at: SystemTime,
    /// See [`Stored::owner`]. Known to the memory of a process only: other tables have room.
    pub(super) owner: Option<Arc<str>>,
}

pub(crate) enum Table {
    Memory(memory::Memory),
    #[cfg(feature = "dynamodb")]
    DynamoDb(dynamodb::DynamoDb),
}

impl Table {
    pub(super) fn in_memory() -> Self {
        Self::Memory(memory::Memory::default())
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    #[cfg(feature = "dynamodb")]
    pub(super) fn in_dynamodb(table: String) -> Self {
        Self::DynamoDb(dynamodb::DynamoDb::new(table))
    }

    /// The item, unless it has expired.
    #[cfg_attr(
        not(feature = "dynamodb"),
        expect(clippy::unused_async, reason = "the same with and without the feature")
    )]
    pub(super) async fn read(&self, id: &str, now: SystemTime) -> Result<Option<Item>, StoreError> {
        let item = match self {
            Self::Memory(memory) => memory.read(id),
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(table) => table.read(id).await?,
        };
        Ok(item.filter(|item| item.expires_at > now))
    }

    /// Writes an item if the one that is there has the version `over`, or, without one, if none is
    /// there or it has expired. Returns whether it is written.
    #[cfg_attr(
        not(feature = "dynamodb"),
        expect(clippy::unused_async, reason = "the same with and without the feature")
    )]
    pub(super) async fn write(
        &self,
        id: &str,
        item: Item,
        over: Option<u64>,
        now: SystemTime,
    ) -> Result<bool, StoreError> {
        match self {
            Self::Memory(memory) => Ok(memory.write(id, item, over, now)),
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(table) => table.write(id, &item, over, now).await,
        }
    }

    /// Removes the item if it has this version; returns whether it had.
    #[cfg_attr(
        not(feature = "dynamodb"),
        expect(clippy::unused_async, reason = "the same with and without the feature")
    )]
    pub(super) async fn remove(&self, id: &str, version: u64) -> Result<bool, StoreError> {
        match self {
            Self::Memory(memory) => Ok(memory.remove(id, version)),
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(table) => table.remove(id, version).await,
        }
    }
}
