//! In the memory of this process.
//!
//! There is room for a number of challenges, because whoever may call may ask for them, for any
//! users. When it is used up, the caller who holds most loses their oldest: who invents users
//! pushes out nobody else. What users have allowed is never pushed out.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use super::Item;

/// Who asks for challenges must not be able to fill the memory.
const MOST: usize = 10_000;
/// How often it is said that challenges are pushed out.
const WARNING: Duration = Duration::from_mins(1);

#[derive(Default)]
pub(crate) struct Memory(Mutex<Items>);

#[derive(Default)]
struct Items {
    all: HashMap<Arc<str>, Kept>,
    /// By their ends: finding those that have ended looks at no others.
    ends: BTreeSet<(SystemTime, Arc<str>)>,
    /// Each owner's challenges, by the number of the write that made them. Owners are few: what
    /// the server can tell apart are its own keys.
    shares: BTreeMap<Arc<str>, BTreeMap<u64, Arc<str>>>,
    writes: u64,
    /// How many have been pushed out since that was last said.
    unsaid: u64,
    said_at: Option<SystemTime>,
}

struct Kept {
    item: Item,
    write: u64,
}

/// That challenges have been pushed out.
struct Warning {
    owner: Arc<str>,
    count: u64,
}

impl Memory {
    fn items(&self) -> MutexGuard<'_, Items> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read(&self, id: &str) -> Option<Item> {
        self.items().all.get(id).map(|kept| kept.item.clone())
    }

    pub(super) fn write(&self, id: &str, item: Item, over: Option<u64>, now: SystemTime) -> bool {
        let mut items = self.items();
        items.remove_ended(now);
        let known = items.all.get(id).map(|kept| kept.item.version);
        if known != over {
            return false;
        }
        items.take(id);
        let is_challenge = item.owner.is_some();
        let pushed_out = is_challenge.then(|| items.make_room()).flatten();
        items.put(id, item);
        let warning = pushed_out.and_then(|owner| items.warning(owner, now));
        drop(items);
        if let Some(Warning { owner, count }) = warning {
            let caller = if owner.is_empty() { "anyone" } else { &owner };
            tracing::warn!(
                caller,
                count,
                "more challenges than this process keeps: the oldest of the caller with most are \
                 dropped"
            );
        }
        true
    }

    pub(super) fn remove(&self, id: &str, version: u64) -> bool {
        let mut items = self.items();
        let kept = items.all.get(id);
        let is_it = kept.is_some_and(|kept| kept.item.version == version);
        if is_it {
            items.take(id);
        }
        is_it
    }
}

impl Items {
    fn put(&mut self, id: &str, item: Item) {
        let id: Arc<str> = id.into();
        self.writes += 1;
        let write = self.writes;
        if let Some(owner) = &item.owner {
            let share = self.shares.entry(Arc::clone(owner)).or_default();
            share.insert(write, Arc::clone(&id));
        }
        self.ends.insert((item.expires_at, Arc::clone(&id)));
        self.all.insert(id, Kept { item, write });
    }

    fn take(&mut self, id: &str) {
        let Some((id, Kept { item, write })) = self.all.remove_entry(id) else {
            return;
        };
        self.ends.remove(&(item.expires_at, id));
        let Some(owner) = item.owner else {
            return;
        };
        if let Some(share) = self.shares.get_mut(&owner) {
            share.remove(&write);
            if share.is_empty() {
                self.shares.remove(&owner);
            }
        }
    }

    /// Each item once, whoever writes.
    fn remove_ended(&mut self, now: SystemTime) {
        while let Some((end, id)) = self.ends.first() {
            if *end > now {
                return;
            }
            let id = Arc::clone(id);
            self.take(&id);
        }
    }

    /// Makes room for one more challenge; says whose one has gone.
    fn make_room(&mut self) -> Option<Arc<str>> {
        let held: usize = self.shares.values().map(BTreeMap::len).sum();
        if held < MOST {
            return None;
        }
        let largest = self.shares.iter().max_by_key(|(_, share)| share.len());
        let (owner, share) = largest?;
        let (_, oldest) = share.first_key_value()?;
        let (owner, oldest) = (Arc::clone(owner), Arc::clone(oldest));
        self.take(&oldest);
        Some(owner)
    }

    /// What the log should say, not too often.
    fn warning(&mut self, owner: Arc<str>, now: SystemTime) -> Option<Warning> {
        self.unsaid += 1;
        let since = self.said_at.map(|at| now.duration_since(at));
        // A clock that was set back has no say.
        if since.is_some_and(|since| since.is_ok_and(|since| since < WARNING)) {
            return None;
        }
        self.said_at = Some(now);
        let count = std::mem::take(&mut self.unsaid);
        Some(Warning { owner, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_mins(10);

    fn start() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_hours(471_252)
    }

    fn item(owner: Option<&str>, ends: SystemTime) -> Item {
        Item {
            version: 1,
            key_id: String::new(),
            sealed: Vec::new(),
            expires_at: ends,
            owner: owner.map(Arc::from),
        }
    }

    fn ask(memory: &Memory, owner: &str, id: &str, now: SystemTime) {
        assert!(memory.write(id, item(Some(owner), now + LIFE), None, now));
    }

    #[test]
    fn who_asks_for_too_many_loses_the_oldest_of_their_own() {
        let (memory, now) = (Memory::default(), start());
        assert!(memory.write("grant", item(None, now + LIFE), None, now));
        ask(&memory, "key A", "a", now);
        for number in 0..2 * MOST {
            ask(&memory, "key B", &format!("b{number}"), now);
        }
        let is_there = |id: &str| memory.read(id).is_some();
        assert!(is_there("a") && is_there("grant"));
        // There are as many as there may be, with the one of the other.
        assert!(!is_there(&format!("b{MOST}")));
        assert!(is_there(&format!("b{}", MOST + 1)));
        assert_eq!(memory.items().all.len(), MOST + 1);
        // The other one still finds room, at the cost of who holds most.
        ask(&memory, "key A", "a2", now);
        assert!(is_there("a") && is_there("a2"));
        assert!(!is_there(&format!("b{}", MOST + 1)));
    }

    #[test]
    fn grants_find_room_and_take_none() {
        let (memory, now) = (Memory::default(), start());
        for number in 0..=MOST {
            let id = format!("grant{number}");
            assert!(memory.write(&id, item(None, now + LIFE), None, now));
        }
        ask(&memory, "", "a", now);
        assert!(memory.read("a").is_some() && memory.read("grant0").is_some());
    }

    #[test]
    fn what_was_written_again_is_not_the_oldest() {
        let (memory, now) = (Memory::default(), start());
        for number in 0..MOST {
            ask(&memory, "", &format!("{number}"), now);
        }
        let again = Item {
            version: 2,
            ..item(Some(""), now + LIFE)
        };
        assert!(memory.write("0", again, Some(1), now));
        assert!(memory.read("1").is_some(), "nothing was added");
        ask(&memory, "", "new", now);
        assert!(memory.read("0").is_some() && memory.read("1").is_none());
    }

    #[test]
    fn what_has_ended_goes_first() {
        let (memory, now) = (Memory::default(), start());
        ask(&memory, "key A", "ended", now);
        let later = now + LIFE;
        for number in 1..MOST {
            ask(&memory, "key B", &format!("b{number}"), later - LIFE / 2);
        }
        ask(&memory, "key B", "last", later);
        assert!(memory.read("b1").is_some() && memory.read("ended").is_none());
        assert!(memory.write("b1", item(Some("key B"), later), Some(1), later));
    }

    #[test]
    fn of_two_writers_one_wins() {
        let (memory, now) = (Memory::default(), start());
        ask(&memory, "", "a", now);
        assert!(!memory.write("a", item(Some(""), now + LIFE), None, now));
        assert!(!memory.write("a", item(Some(""), now + LIFE), Some(2), now));
        assert!(!memory.remove("a", 2) && memory.remove("a", 1));
        assert!(memory.items().shares.is_empty() && memory.items().ends.is_empty());
    }

    #[test]
    fn it_is_said_once_a_minute() {
        let mut items = Items::default();
        let mut count = |seconds| {
            let now = start() + Duration::from_secs(seconds);
            items.warning("".into(), now).map(|it| it.count)
        };
        assert_eq!([count(0), count(1), count(59)], [Some(1), None, None]);
        assert_eq!([count(60), count(61)], [Some(3), None]);
    }
}
