//! Calls remembered in this process.

use std::{
    collections::{HashMap, VecDeque},
    future::ready,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use super::{CallStore, Doing, Record, State};

/// How many calls are remembered, and how many bytes of outcomes.
const MOST_CALLS: usize = 10_000;
const MOST_BYTES: usize = 16 << 20;

/// A map that forgets the oldest finished calls when it is full.
#[derive(Default)]
pub(super) struct Memory(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    records: HashMap<String, Held>,
    /// Keys in the order of their claims, those of forgotten records among them.
    order: VecDeque<(u64, String)>,
    claims: u64,
    bytes: usize,
}

struct Held {
    /// Which claim it was; a key may have been claimed again since it was put into the order.
    number: u64,
    record: Record,
}

impl CallStore for Memory {
    fn claim<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        now: SystemTime,
    ) -> Doing<'a, Option<Record>> {
        let mut calls = self.lock();
        if let Some(Held { record, .. }) = calls.records.get(key)
            && record.free_at > now
        {
            return Box::pin(ready(Ok(Some(record.clone()))));
        }
        calls.claims += 1;
        let number = calls.claims;
        calls.put(key, number, record);
        calls.order.push_back((number, key.to_owned()));
        calls.make_room(now);
        Box::pin(ready(Ok(None)))
    }

    fn finish<'a>(&'a self, key: &'a str, record: &'a Record) -> Doing<'a, bool> {
        let mut calls = self.lock();
        let number = calls.number_of(key, &record.claim);
        if let Some(number) = number {
            calls.put(key, number, record);
            // Records are finished in the time of their claim; what is over by now is not known.
            calls.make_room(SystemTime::UNIX_EPOCH);
        }
        Box::pin(ready(Ok(number.is_some())))
    }

    fn release<'a>(&'a self, key: &'a str, claim: &'a str) -> Doing<'a, ()> {
        let mut calls = self.lock();
        if calls.number_of(key, claim).is_some() {
            calls.take(key);
        }
        Box::pin(ready(Ok(())))
    }

    fn largest_outcome(&self) -> usize {
        MOST_BYTES / 4
    }
}

impl Memory {
    /// Nothing between locking and unlocking panics halfway.
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn number_of(&self, key: &str, claim: &str) -> Option<u64> {
        let held = self.records.get(key)?;
        (held.record.claim == claim).then_some(held.number)
    }

    fn put(&mut self, key: &str, number: u64, record: &Record) {
        self.take(key);
        self.bytes += record.size();
        let record = record.clone();
        self.records.insert(key.to_owned(), Held { number, record });
    }

    fn take(&mut self, key: &str) {
        if let Some(held) = self.records.remove(key) {
            self.bytes -= held.record.size();
        }
    }

    /// Forgets what is oldest, but no call that runs: that would let it run twice.
    fn make_room(&mut self, now: SystemTime) {
        let mut running = Vec::new();
        while self.records.len() > MOST_CALLS || self.bytes > MOST_BYTES {
            let Some((number, key)) = self.order.pop_front() else {
                break;
            };
            let held = self.records.get(&key);
            match held.filter(|held| held.number == number) {
                None => {}
                Some(held) if is_running(&held.record, now) => running.push((number, key)),
                Some(_) => self.take(&key),
            }
        }
        for entry in running.into_iter().rev() {
            self.order.push_front(entry);
        }
        // Released calls leave their place in the order behind.
        if self.order.len() > 2 * MOST_CALLS {
            let records = &self.records;
            let is_held =
                |number, key: &String| records.get(key).is_some_and(|held| held.number == number);
            self.order.retain(|(number, key)| is_held(*number, key));
        }
    }
}

fn is_running(record: &Record, now: SystemTime) -> bool {
    matches!(record.state, State::Running { .. }) && record.free_at > now
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn record(claim: &str, state: State) -> Record {
        Record {
            claim: claim.to_owned(),
            fingerprint: String::new(),
            state,
            free_at: NOW + Duration::from_secs(1),
            expires_at: NOW + Duration::from_secs(1),
        }
    }

    async fn claims(memory: &Memory, key: &str) -> bool {
        let running = record(key, State::Running { until: NOW });
        memory.claim(key, &running, NOW).await.unwrap().is_none()
    }

    #[tokio::test]
    async fn the_oldest_finished_calls_make_room_for_new_ones() {
        let memory = Memory::default();
        for i in 0..MOST_CALLS {
            assert!(claims(&memory, &i.to_string()).await);
        }
        for i in ["1", "2"] {
            memory.finish(i, &record(i, State::Ran)).await.unwrap();
        }
        assert!(claims(&memory, "new").await);
        assert!(!claims(&memory, "0").await, "still runs");
        assert!(claims(&memory, "1").await, "was the oldest finished one");
        assert!(!claims(&memory, "3").await);
    }

    #[tokio::test]
    async fn calls_that_came_to_nothing_push_nothing_out() {
        let memory = Memory::default();
        assert!(claims(&memory, "first").await);
        let first = record("first", State::Ran);
        memory.finish("first", &first).await.unwrap();
        for i in 0..3 * MOST_CALLS {
            let key = i.to_string();
            assert!(claims(&memory, &key).await);
            memory.release(&key, &key).await.unwrap();
        }
        assert!(!claims(&memory, "first").await);
        assert!(memory.lock().order.len() <= 2 * MOST_CALLS + 1);
    }

    #[tokio::test]
    async fn bytes_are_counted_too_and_given_back() {
        let memory = Memory::default();
        let outcome = || State::Finished(vec![0; memory.largest_outcome()]);
        for i in ["a", "b", "c", "d"] {
            assert!(claims(&memory, i).await);
            memory.finish(i, &record(i, outcome())).await.unwrap();
        }
        assert!(claims(&memory, "e").await);
        memory.finish("e", &record("e", outcome())).await.unwrap();
        assert!(claims(&memory, "f").await);
        assert!(claims(&memory, "a").await, "made room");
        for i in ["b", "c", "d", "e", "f", "a"] {
            memory.release(i, i).await.unwrap();
        }
        assert_eq!(memory.lock().bytes, 0);
    }
}
