//! Challenges and grants as records of the store, encrypted.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Serialize, de::DeserializeOwned};

use super::keys::EncryptionKeys;
use crate::{
    StoreError,
    clock::Clock,
    store::{
        self, Change, Field, Over, PutOutcome, Record, Start, Store, Write, memory::MemoryLimits,
        update, within,
    },
};

/// The limits of challenges and grants in the memory of one process. Callers may request challenges
/// for any number of users.
pub(super) const LIMITS: MemoryLimits = MemoryLimits {
    what: "challenges and grants",
    records: 20_000,
    bytes: 32 << 20,
    // Without its challenge, a user starts again; a grant cannot be replaced. The sign-ins of
    // strangers never push out that of a user who is at the provider.
    may_forget: |id, _| id.starts_with("challenge#"),
    is_anyones: |id| id.starts_with("sign-in#"),
    forgotten: "too many challenges in memory: the oldest are forgotten",
};

/// The time limit of one operation of the store.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The store, and the clock for its records' expiry.
pub(crate) struct EncryptedRecords {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
}

/// The content of a record. Without a record there is neither a value nor a version; a record that
/// cannot be decrypted has only a version.
pub(crate) struct Versioned<T> {
    pub(crate) value: Option<T>,
    /// The condition for replacing it.
    pub(crate) over: Over,
    /// The time until the record expires.
    pub(super) left: Duration,
    /// True if the record is encrypted with an old key.
    pub(super) has_old_key: bool,
}

impl EncryptedRecords {
    pub(super) async fn warm_up(&self) -> Result<(), StoreError> {
        within(TIMEOUT, self.store.warm_up()).await.flatten()
    }

    pub(crate) async fn load<T: DeserializeOwned>(
        &self,
        keys: &EncryptionKeys,
        record_id: &str,
    ) -> Result<Versioned<T>, StoreError> {
        let record = within(TIMEOUT, self.store.get(record_id)).await.flatten()?;
        Ok(opened(keys, record_id, record, self.clock.now()))
    }

    /// Replaces the version that was read. Returns false if another request replaced it first.
    pub(crate) async fn save<T: Serialize>(
        &self,
        keys: &EncryptionKeys,
        record_id: &str,
        value: &T,
        life: Duration,
        over: Over,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let record = sealed(keys, record_id, value, now + life);
        self.write(record_id, &record, over, now).await
    }

    async fn write(
        &self,
        id: &str,
        record: &Record,
        over: Over,
        now: SystemTime,
    ) -> Result<bool, StoreError> {
        let write = Write {
            id,
            record,
            over,
            now,
        };
        let outcome = store::put(&*self.store, TIMEOUT, write).await?;
        Ok(outcome == PutOutcome::Written)
    }

    /// Loads a record, unless it is probably absent, and saves the value that `decide` returns, if
    /// any. Starts again if another request has replaced the record in the meantime.
    pub(crate) async fn update<T: Serialize + DeserializeOwned, R>(
        &self,
        start: Start,
        keys: &EncryptionKeys,
        record_id: &str,
        life: Duration,
        mut decide: impl FnMut(Versioned<T>) -> Change<T, R>,
    ) -> Result<R, StoreError> {
        let decide = |record| {
            let now = self.clock.now();
            match decide(opened(keys, record_id, record, now)) {
                Change::Leave(result) => Change::Leave(result),
                Change::Write(value, result) => {
                    Change::Write(sealed(keys, record_id, &value, now + life), result)
                }
            }
        };
        let (store, now, limits) = (&*self.store, self.clock.now(), (TIMEOUT, false));
        update(store, record_id, start, now, limits, decide).await
    }

    /// Takes a lease and returns its version. `None` if the lease is already taken.
    pub(super) async fn lease(
        &self,
        record_id: &str,
        life: Duration,
    ) -> Result<Option<u64>, StoreError> {
        let now = self.clock.now();
        let record = record(Vec::new(), now + life);
        let is_written = self.write(record_id, &record, Over::Nothing, now).await?;
        Ok(is_written.then_some(record.version))
    }

    pub(super) async fn end_lease(&self, record_id: &str, version: u64) -> Result<(), StoreError> {
        let deleted = within(TIMEOUT, self.store.delete(record_id, version)).await;
        deleted.flatten()
    }
}

fn sealed<T: Serialize>(
    keys: &EncryptionKeys,
    record_id: &str,
    value: &T,
    expires_at: SystemTime,
) -> Record {
    let text = serde_json::to_vec(value).expect("our own values have string keys only");
    let (key_id, sealed) = keys.seal(record_id, &text);
    let fields = vec![
        ("key_id".into(), Field::Text(key_id)),
        ("sealed".into(), Field::Bytes(sealed)),
    ];
    record(fields, expires_at)
}

fn record(fields: Vec<(Cow<'static, str>, Field)>, expires_at: SystemTime) -> Record {
    Record {
        version: store::new_version(),
        fields,
        free_at: None,
        expires_at,
    }
}

/// Decrypts a record. A free one counts as absent.
fn opened<T: DeserializeOwned>(
    keys: &EncryptionKeys,
    record_id: &str,
    record: Option<Record>,
    now: SystemTime,
) -> Versioned<T> {
    let Some(mut record) = record.filter(|it| !it.is_free(now)) else {
        return Versioned {
            value: None,
            over: Over::Nothing,
            left: Duration::ZERO,
            has_old_key: false,
        };
    };
    let key_id = record.take_text("key_id").unwrap_or_default();
    let sealed = record.take_bytes("sealed").unwrap_or_default();
    let text = keys.open(record_id, &key_id, &sealed);
    let value = text.and_then(|text| serde_json::from_slice(&text).ok());
    if value.is_none() {
        tracing::warn!(key = key_id, "a challenge or grant cannot be decrypted");
    }
    Versioned {
        value,
        over: Over::Version(record.version),
        has_old_key: !keys.is_newest(&key_id),
        left: record.expires_at.duration_since(now).unwrap_or_default(),
    }
}
