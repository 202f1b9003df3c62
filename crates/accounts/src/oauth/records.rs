//! Records of the store that are encrypted: challenges, grants, and what sign-in keeps.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::keys::EncryptionKeys;
use crate::{
    StoreError,
    clock::Clock,
    store::{
        self, Change, Field, Over, PutOutcome, Record, Store, Write, hash_of_texts,
        memory::MemoryLimits, update, within,
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
pub(super) const TIMEOUT: Duration = Duration::from_secs(3);

/// The records, as one request reads and writes them: with the keys of its time.
pub(crate) struct Records {
    pub(super) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) keys: EncryptionKeys,
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

impl Records {
    pub(crate) async fn load<T: DeserializeOwned>(
        &self,
        id: &str,
    ) -> Result<Versioned<T>, StoreError> {
        let record = within(TIMEOUT, self.store.get(id)).await?;
        Ok(self.opened(id, record))
    }

    /// Replaces the version that was read. Returns false if another request replaced it first.
    pub(crate) async fn save<T: Serialize>(
        &self,
        id: &str,
        value: &T,
        life: Duration,
        over: Over,
    ) -> Result<bool, StoreError> {
        self.write(id, &self.sealed(id, value, life), over).await
    }

    async fn write(&self, id: &str, record: &Record, over: Over) -> Result<bool, StoreError> {
        let write = Write {
            id,
            record,
            over,
            now: self.clock.now(),
        };
        let outcome = store::put(&*self.store, TIMEOUT, write).await?;
        Ok(outcome == PutOutcome::Written)
    }

    /// Loads a record, and saves the value that `decide` returns, if any. Starts again if another
    /// request has replaced the record in the meantime.
    pub(crate) async fn update<T: Serialize + DeserializeOwned, R>(
        &self,
        id: &str,
        life: Duration,
        mut decide: impl FnMut(Versioned<T>) -> Change<T, R>,
    ) -> Result<R, StoreError> {
        let decide = |record| match decide(self.opened(id, record)) {
            Change::Leave(result) => Change::Leave(result),
            Change::Write(value, result) => Change::Write(self.sealed(id, &value, life), result),
        };
        update(&*self.store, id, self.clock.now(), TIMEOUT, decide).await
    }

    /// Takes a lease and returns its version. `None` if the lease is already taken.
    pub(super) async fn lease(&self, id: &str, life: Duration) -> Result<Option<u64>, StoreError> {
        let record = self.record(Vec::new(), life);
        let is_written = self.write(id, &record, Over::Nothing).await?;
        Ok(is_written.then_some(record.version))
    }

    pub(super) async fn end_lease(&self, id: &str, version: u64) -> Result<(), StoreError> {
        within(TIMEOUT, self.store.delete(id, version)).await
    }

    fn record(&self, fields: Vec<(Cow<'static, str>, Field)>, life: Duration) -> Record {
        Record {
            version: store::new_version(),
            fields,
            free_at: None,
            expires_at: self.clock.now() + life,
        }
    }

    fn sealed<T: Serialize>(&self, id: &str, value: &T, life: Duration) -> Record {
        let (key_id, sealed) = self.keys.seal(id, value);
        let fields = vec![
            ("key_id".into(), Field::Text(key_id)),
            ("sealed".into(), Field::Bytes(sealed)),
        ];
        self.record(fields, life)
    }

    /// Decrypts a record. A free one counts as absent.
    fn opened<T: DeserializeOwned>(&self, id: &str, record: Option<Record>) -> Versioned<T> {
        let now = self.clock.now();
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
        let value = self.keys.open(id, &key_id, &sealed);
        if value.is_none() {
            tracing::warn!(key = key_id, "a challenge or grant cannot be decrypted");
        }
        Versioned {
            value,
            over: Over::Version(record.version),
            has_old_key: !self.keys.is_newest(&key_id),
            left: record.expires_at.duration_since(now).unwrap_or_default(),
        }
    }
}

/// Returns the hash in a record's id: record ids appear in logs and metrics, so they contain no
/// user ids. Read access to the store still reveals whether a given user is in it. An empty
/// namespace is not hashed.
pub(super) fn record_hash(
    kind: &str,
    caller: &str,
    user: &str,
    provider: &str,
    scopes: &[String],
) -> String {
    let mut scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
    scopes.sort_unstable();
    scopes.dedup();
    // No kind is named "caller", so a hash with a namespace differs from every hash without one.
    let caller = (!caller.is_empty()).then_some(["caller", caller]);
    let caller = caller.into_iter().flatten();
    hash_of_texts(caller.chain([kind, user, provider]).chain(scopes))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_caller_has_separate_records() {
        let scopes = ["https://www.googleapis.com/auth/gmail.readonly".to_owned()];
        let hash = |kind: &str, caller: &str, user: &str| {
            record_hash(kind, caller, user, "google", &scopes)
        };
        let all = [
            hash("challenge", "", "user-1"),
            hash("challenge", "key A", "user-1"),
            hash("challenge", "key B", "user-1"),
            hash("challenge", "key A", "user-2"),
            hash("grant", "key A", "user-1"),
            // The same text if the parts were concatenated.
            hash("challenge", "key Au", "ser-1"),
            record_hash("caller", "", "key A", "challenge", &scopes),
        ];
        assert_eq!(HashSet::from(all).len(), 7);
    }
}
