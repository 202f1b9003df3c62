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
    store::{self, Eviction, Field, PutOutcome, Record, Store, memory::MemoryLimits, within},
};

/// What the memory of one process keeps. Whoever may call may ask for challenges, for any users;
/// what users have allowed takes nobody's share.
pub(super) const LIMITS: MemoryLimits = MemoryLimits {
    what: "challenges",
    of_one: 10_000,
    of_all: 10_000,
    bytes: usize::MAX,
    forgotten: "more challenges than this process keeps: the oldest of the caller with most are dropped",
    dropped: "",
};

/// How long the store may take to answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// What can be kept.
pub(super) trait Stored: Serialize + DeserializeOwned {
    /// The namespace of the caller in whose share of a full store it is; none for what nothing
    /// may push out.
    fn owner(&self) -> Option<&str>;
}

/// The store, and the time by which what is in it expires.
pub(super) struct EncryptedRecords {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
}

/// What is kept in a place: nothing, something, or something that cannot be read any longer.
pub(super) struct Versioned<T> {
    pub(super) value: Option<T>,
    pub(super) version: Option<u64>,
    /// How long it is still kept.
    pub(super) left: Duration,
    /// Whether it is encrypted with an old key.
    pub(super) is_to_renew: bool,
}

/// What becomes of what is kept in a place, with what is to be returned.
pub(super) type Change<T, R> = store::Change<T, R>;

impl EncryptedRecords {
    pub(super) async fn load<T: Stored>(
        &self,
        keys: &EncryptionKeys,
        record_id: &str,
    ) -> Result<Versioned<T>, StoreError> {
        let record = within(TIMEOUT, self.store.get(record_id)).await.flatten()?;
        let now = self.clock.now();
        Ok(opened(
            keys,
            record_id,
            record.filter(|it| !it.is_free(now)),
            now,
        ))
    }

    /// Writes over the version that was read. Returns whether nobody else was faster.
    pub(super) async fn save<T: Stored>(
        &self,
        keys: &EncryptionKeys,
        record_id: &str,
        value: &T,
        life: Duration,
        over: Option<u64>,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let record = sealed(keys, record_id, value, now + life);
        let put = store::put(&*self.store, TIMEOUT, (record_id, &record), over, now).await?;
        Ok(put == PutOutcome::Written)
    }

    /// Loads, decides, saves if unchanged, and again while others are faster.
    pub(super) async fn update<T: Stored, R>(
        &self,
        keys: &EncryptionKeys,
        record_id: &str,
        life: Duration,
        mut decide: impl FnMut(Versioned<T>) -> Change<T, R>,
    ) -> Result<R, StoreError> {
        let decide = |record| {
            let now = self.clock.now();
            match decide(opened(keys, record_id, record, now)) {
                Change::Leave(done) => Change::Leave(done),
                Change::Write(value, done) => {
                    Change::Write(sealed(keys, record_id, &value, now + life), done)
                }
            }
        };
        store::update(&*self.store, TIMEOUT, record_id, &self.clock, decide).await
    }

    /// Takes a lease, unless somebody has it. Returns its version.
    pub(super) async fn lease(
        &self,
        record_id: &str,
        life: Duration,
    ) -> Result<Option<u64>, StoreError> {
        let now = self.clock.now();
        let record = record(Vec::new(), None, now + life);
        let put = store::put(&*self.store, TIMEOUT, (record_id, &record), None, now).await?;
        Ok((put == PutOutcome::Written).then_some(record.version))
    }

    pub(super) async fn end_lease(&self, record_id: &str, version: u64) -> Result<(), StoreError> {
        let deleted = within(TIMEOUT, self.store.delete(record_id, version)).await;
        deleted.flatten()
    }
}

fn sealed<T: Stored>(
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
    let eviction = value.owner().map(|owner| Eviction {
        owner: owner.to_owned(),
        is_forgettable: true,
        droppable: None,
    });
    record(fields, eviction, expires_at)
}

fn record(
    fields: Vec<(Cow<'static, str>, Field)>,
    eviction: Option<Eviction>,
    expires_at: SystemTime,
) -> Record {
    Record {
        version: store::new_version(),
        fields,
        eviction,
        free_at: None,
        expires_at,
    }
}

fn opened<T: Stored>(
    keys: &EncryptionKeys,
    record_id: &str,
    record: Option<Record>,
    now: SystemTime,
) -> Versioned<T> {
    let Some(mut record) = record else {
        return Versioned {
            value: None,
            version: None,
            left: Duration::ZERO,
            is_to_renew: false,
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
        version: Some(record.version),
        is_to_renew: !keys.is_newest(&key_id),
        left: record.expires_at.duration_since(now).unwrap_or_default(),
    }
}
