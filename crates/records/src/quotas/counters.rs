//! Counting calls against quotas.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{Quota, Subject};
use crate::{
    Caller, StoreError,
    clock::timestamp,
    store::{
        Count, Store, hash_of,
        memory::{Memory, MemoryLimits},
        within,
    },
};

/// The limits on the counts in the memory of one process.
const LIMITS: MemoryLimits = MemoryLimits {
    what: "callers, users or tools to count calls of",
    records: 50_000,
    bytes: 1,
    may_forget: |_, _| false,
    is_anyones: |_| false,
    forgotten: "",
};

/// The time for which a count is kept after the end of its window. The clocks of two processes may
/// differ by as much, and a count that one of them still uses must not be deleted.
const MARGIN: Duration = Duration::from_hours(24);

/// The number of full windows that are remembered.
const MOST_FULL: usize = 10_000;

/// The quotas of a server, and the store that counts.
pub struct Quotas {
    quotas: Vec<Quota>,
    store: Arc<dyn Store>,
    /// The ends of full windows by the ids of their counts: a count never falls, so no request is
    /// needed for the other calls in such a window.
    full: Mutex<HashMap<String, SystemTime>>,
}

/// The facts of a call that quotas distinguish.
#[derive(Clone, Copy)]
pub struct CountedCall<'a> {
    /// The caller, by its identity.
    pub caller: &'a Caller,
    /// The user on whose behalf the tool would run.
    pub user: Option<&'a str>,
    /// The name of the tool, without its version.
    pub tool: &'a str,
}

/// A quota that is used up.
#[derive(Debug)]
pub struct ExceededQuota {
    /// The quota in words: `60 calls per minute for each caller`.
    pub in_words: String,
    /// What counts together, as in `TOOLS_QUOTAS`: `caller`, `tool:SMS.Send`.
    pub subject: String,
    /// The number of calls in a window.
    pub limit: u64,
    /// The length of a window: a minute or a day.
    pub window: Duration,
    /// The time until the next window.
    pub wait: Duration,
}

impl Quotas {
    /// Creates the counters. Without a store that all instances share, the memory of this process
    /// counts.
    pub fn new(mut quotas: Vec<Quota>, shared: Option<Arc<dyn Store>>) -> Self {
        // Narrow and short quotas first: a call that they reject must not count against the others.
        quotas.sort_by_key(|it| (it.subject.breadth(), it.window));
        Self {
            quotas,
            store: shared.unwrap_or_else(|| Arc::new(Memory::new(LIMITS))),
            full: Mutex::default(),
        }
    }

    /// Returns true if no call is counted.
    pub fn is_empty(&self) -> bool {
        self.quotas.is_empty()
    }

    /// Counts a call against every quota that applies to it, unless one is used up, which is returned.
    /// An error means that it is unknown how many calls have run. `limit` is the time that the store may
    /// take.
    pub async fn count(
        &self,
        call: CountedCall<'_>,
        now: SystemTime,
        limit: Duration,
    ) -> Result<Option<ExceededQuota>, StoreError> {
        let applies = |it: &&Quota| it.tool().is_none_or(|name| name == call.tool);
        let quotas = self.quotas.iter().filter(applies);
        let quotas: Vec<_> = quotas.map(|it| (it, it.count_id(&call, now))).collect();
        // If a quota is known to be used up, the call does not count against the others.
        let full = quotas
            .iter()
            .filter(|(it, id)| it.limit == 0 || self.is_full(id));
        let full = full.map(|(it, _)| it.exceeded(now));
        if let Some(quota) = full.max_by_key(|it| it.wait) {
            return Ok(Some(quota));
        }
        let end = Instant::now() + limit;
        for (quota, id) in quotas {
            let free_at = quota.window.end(now);
            let count = Count {
                id: &id,
                limit: quota.limit,
                free_at,
                expires_at: free_at + MARGIN,
                now,
            };
            let left = end.saturating_duration_since(Instant::now());
            if !within(left, self.store.count(count)).await? {
                self.remember_full(id, free_at, now);
                return Ok(Some(quota.exceeded(now)));
            }
        }
        Ok(None)
    }

    fn is_full(&self, id: &str) -> bool {
        let full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        full.contains_key(id)
    }

    fn remember_full(&self, id: String, end: SystemTime, now: SystemTime) {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        if full.len() >= MOST_FULL {
            full.retain(|_, end| *end > now);
        }
        if full.len() < MOST_FULL {
            full.insert(id, end);
        }
    }
}

impl Subject {
    fn breadth(&self) -> u8 {
        match self {
            Self::User => 0,
            Self::Caller => 1,
            Self::Tool | Self::OneTool(_) => 2,
            Self::All => 3,
        }
    }
}

impl Quota {
    /// Returns the id of the count that the call belongs to in the window around `now`.
    fn count_id(&self, call: &CountedCall<'_>, now: SystemTime) -> String {
        let (subject, window) = (self.subject.to_string(), self.window.name());
        let end = timestamp(self.window.end(now));
        let mut texts = vec![Some(&*subject), Some(window), Some(&*end)];
        match self.subject {
            Subject::User => {
                texts.push(call.user);
                texts.extend(call.caller.identity());
            }
            Subject::Caller => texts.extend(call.caller.identity()),
            Subject::Tool => texts.push(Some(call.tool)),
            Subject::OneTool(_) | Subject::All => {}
        }
        format!("quota#{}", &hash_of(&texts)[..32])
    }

    fn exceeded(&self, now: SystemTime) -> ExceededQuota {
        ExceededQuota {
            in_words: self.in_words(),
            subject: self.subject.to_string(),
            limit: self.limit,
            window: self.window.length(),
            wait: self.window.end(now).duration_since(now).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_two_used_up_quotas_the_longer_wait_is_told() {
        let noon = SystemTime::UNIX_EPOCH + Duration::from_hours(12);
        let wait = async |quotas: &Quotas, tool| {
            let call = CountedCall {
                caller: &Caller::Anyone,
                user: None,
                tool,
            };
            let counted = quotas.count(call, noon, Duration::from_secs(1)).await;
            counted.unwrap().map_or(Duration::ZERO, |quota| quota.wait)
        };
        let (minute, day) = (Duration::from_mins(1), Duration::from_hours(12));
        // This instance finds one of them used up after the other.
        let one = [
            ("A.Act", Duration::ZERO),
            ("A.Act", minute),
            ("B.Act", day),
            ("A.Act", day),
        ];
        // A limit of 0 is used up from the beginning.
        for (limit, calls) in [(1, &one[..]), (0, &[("A.Act", day)])] {
            let short = Quota::per_minute(limit).of_tool("A.Act");
            let long = Quota::per_day(limit);
            for quotas in [vec![short.clone(), long.clone()], vec![long, short]] {
                let quotas = Quotas::new(quotas, None);
                for (tool, expected) in calls {
                    assert_eq!(wait(&quotas, tool).await, *expected, "{limit} {tool}");
                }
            }
        }
    }

    /// What each quota tells apart: two calls that differ in one fact count together or not.
    #[tokio::test]
    async fn quotas_count_together_what_they_do_not_tell_apart() {
        let key = |id: &str| Caller::ApiKey { id: id.into() };
        let (one, two) = (key("A"), key("B"));
        let call = |caller, user, tool| CountedCall { caller, user, tool };
        let first = call(&one, Some("u"), "A.Act");
        let others = [
            call(&two, Some("u"), "A.Act"),
            call(&one, Some("v"), "A.Act"),
            call(&one, None, "A.Act"),
            call(&one, Some("u"), "B.Act"),
            first,
        ];
        let (now, limit) = (SystemTime::UNIX_EPOCH, Duration::from_secs(1));
        let quota = || Quota::per_day(1);
        for (quota, apart) in [
            (quota(), [false, false, false, false, false]),
            (quota().by_caller(), [true, false, false, false, false]),
            (quota().by_user(), [true, true, true, false, false]),
            (quota().by_tool(), [false, false, false, true, false]),
            (quota().of_tool("A.Act"), [false, false, false, true, false]),
        ] {
            for (index, (other, apart)) in others.into_iter().zip(apart).enumerate() {
                let quotas = Quotas::new(vec![quota.clone()], None);
                quotas.count(first, now, limit).await.unwrap();
                let exceeded = quotas.count(other, now, limit).await.unwrap();
                assert_eq!(exceeded.is_none(), apart, "{quota:?} {index}");
            }
        }
    }

    #[tokio::test]
    async fn the_memory_has_room_for_the_numbers_of_a_window() {
        let quotas = Quotas::new(vec![Quota::per_minute(1).by_user()], None);
        let count = async |minute: u32, user: u32| {
            let call = CountedCall {
                caller: &Caller::Anyone,
                user: Some(&user.to_string()),
                tool: "A.Act",
            };
            let now = SystemTime::UNIX_EPOCH + Duration::from_mins(1) * minute;
            quotas.count(call, now, Duration::from_secs(1)).await
        };
        for user in 0..50_000 {
            assert!(count(0, user).await.unwrap().is_none());
        }
        assert!(count(0, 0).await.unwrap().is_some());
        assert!(count(0, 50_000).await.unwrap_err().is_full());
        // Past numbers make room.
        assert!(count(1, 50_000).await.unwrap().is_none());
    }
}
