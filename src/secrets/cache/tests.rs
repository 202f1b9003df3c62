//! Tests of the cache, with a clock and a store that each test controls.

use std::{cell::Cell, sync::LazyLock, time::Instant};

use tokio::task::JoinSet;

use super::*;
use crate::secrets::{ReadFuture, SecretStore};

const TTL: Duration = Duration::from_mins(5);
const LITTLE: Duration = Duration::from_millis(10);

thread_local! {
    /// The time by which the test has moved the clock. Thread-local, because a test and its tasks
    /// share one thread.
    static MOVED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn instant() -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    *START + MOVED.get()
}

fn clock() -> Clock {
    Clock::new(std::time::SystemTime::now, instant, uuid::Uuid::new_v4)
}

fn wait(time: Duration) {
    MOVED.set(MOVED.get() + time);
}

/// The ids of each request.
type Requests = Arc<Mutex<Vec<Vec<String>>>>;

/// The behaviour of a store for an id.
#[derive(Clone)]
enum Reply {
    Result(ReadResult),
    /// It returns fewer results than ids.
    Nothing,
    Never,
}

impl From<ReadResult> for Reply {
    fn from(result: ReadResult) -> Self {
        Self::Result(result)
    }
}

type Lookup = Box<dyn FnMut(&str) -> Reply + Send>;

struct Store {
    lookup: Mutex<Lookup>,
    requests: Requests,
}

impl SecretStore for Store {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        Box::pin(async move {
            self.requests.lock().unwrap().push(ids.to_vec());
            tokio::time::sleep(LITTLE).await;
            let mut results = Vec::new();
            for id in ids {
                let reply = self.lookup.lock().unwrap()(id);
                match reply {
                    Reply::Result(result) => results.push(result),
                    Reply::Nothing => {}
                    Reply::Never => std::future::pending().await,
                }
            }
            results
        })
    }

    fn location(&self, id: &str) -> String {
        id.to_owned()
    }

    fn batch_size(&self) -> usize {
        20
    }
}

struct Fixture {
    cache: Arc<SecretCache>,
    requests: Requests,
}

impl Fixture {
    fn new<R: Into<Reply>>(lookup: impl FnMut(&str) -> R + Send + 'static) -> Self {
        Self::with(lookup, &[], |secrets| secrets)
    }

    fn with<R: Into<Reply>>(
        mut lookup: impl FnMut(&str) -> R + Send + 'static,
        declared: &[String],
        change: impl FnOnce(Secrets) -> Secrets,
    ) -> Self {
        let requests = Requests::default();
        let store = Store {
            lookup: Mutex::new(Box::new(move |id| lookup(id).into())),
            requests: Arc::clone(&requests),
        };
        let secrets = change(Secrets::from_store(store));
        let cache = SecretCache::new(secrets, declared.to_vec(), clock());
        Self { cache, requests }
    }

    async fn read(&self, id: &str) -> ReadResult {
        self.cache.read(&[id], None).await.remove(0)
    }

    /// Returns the value, or the error's text.
    async fn text(&self, id: &str) -> String {
        match self.read(id).await {
            Ok(Some(secret)) => secret.expose().to_owned(),
            Ok(None) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// Returns the number of ids in each request.
    fn sizes(&self) -> Vec<usize> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(Vec::len).collect()
    }

    async fn reread(&self, id: &str, rejected: &Secret) -> Option<String> {
        let value = self.cache.reread(id, rejected, TTL).await?;
        Some(value.expose().to_owned())
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "one of the results that a store can return"
)]
fn present(value: impl Into<Secret>) -> ReadResult {
    Ok(Some(value.into()))
}

/// Returns one result after the other, and repeats the last one.
fn in_turn<R: Clone + Send>(results: impl Into<Vec<R>>) -> impl FnMut(&str) -> R + Send {
    let (results, mut next) = (results.into(), 0);
    move |_| {
        let result = results[next.min(results.len() - 1)].clone();
        next += 1;
        result
    }
}

const DOWN: &str = "the store is not available: x";

/// Returns the result that `Fixture::text` gives this text.
fn result(text: &str) -> ReadResult {
    match text {
        "none" => Ok(None),
        "access denied: x" => Err(StoreError::denied("x")),
        "throttled: x" => Err(StoreError::throttled("x")),
        DOWN => Err(StoreError::unavailable("x")),
        value => present(value),
    }
}

/// For the results of a store one after the other: the time until each read of the cache, its text, and
/// the number of requests so far.
#[tokio::test]
async fn a_result_is_used_as_long_as_its_kind_allows() {
    const NOW: Duration = Duration::ZERO;
    const STALE: Duration = Duration::from_mins(1);
    let unchanged = TTL.saturating_sub(LITTLE);
    // Values are read again when they expire.
    let values: &[_] = &[(NOW, "old", 1), (unchanged, "old", 1), (LITTLE, "new", 2)];
    // The store is left alone for a moment, and read again once it has recovered.
    let recovery: &[_] = &[(NOW, DOWN, 1), (NOW, DOWN, 1), (PAUSE, "value", 2)];
    let mut cases = vec![
        (TTL, vec!["old", "new"], values.to_vec()),
        (TTL, vec![DOWN, "value"], recovery.to_vec()),
    ];
    // The last good value replaces temporary errors for a limited time.
    for error in ["throttled: x", DOWN] {
        let reads = [
            (NOW, "good", 1),
            (TTL, "good", 2),
            (NOW, "good", 2),
            (PAUSE, "good", 3),
            (STALE, error, 4),
        ];
        cases.push((TTL, vec!["good", error], reads.to_vec()));
    }
    // Absence and denial are remembered briefly, and replace a good value.
    for text in ["none", "access denied: x"] {
        let reads = [
            (NOW, "good", 1),
            (TTL, text, 2),
            (NOW, text, 2),
            (NEGATIVE_TTL, "restored", 3),
        ];
        cases.push((TTL, vec!["good", text, "restored"], reads.to_vec()));
    }
    // Without caching, absence and errors are remembered all the same.
    let reads = [
        (NOW, DOWN, 1),
        (NOW, DOWN, 1),
        (PAUSE, "none", 2),
        (NOW, "none", 2),
        (NEGATIVE_TTL, "one", 3),
        (NOW, "two", 4),
        (NOW, "throttled: x", 5),
    ];
    let results = vec![DOWN, "none", "one", "two", "throttled: x"];
    cases.push((NOW, results, reads.to_vec()));
    for (cache_for, results, reads) in cases {
        let results: Vec<_> = results.into_iter().map(result).collect();
        let lookup = in_turn(results);
        let fixture = Fixture::with(lookup, &[], |it| it.cache_for(cache_for).stale_for(STALE));
        for (time, text, requests) in reads {
            wait(time);
            assert_eq!(fixture.text("A").await, text);
            assert_eq!(fixture.requests(), requests, "{text}");
        }
    }
}

#[tokio::test]
async fn a_thousand_calls_make_one_request_for_each_full_batch() {
    let ids: Vec<_> = (0..45).map(|i| format!("ID_{i}")).collect();
    let fixture = Fixture::with(|id| present(id), &ids, |secrets| secrets);
    let mut calls = JoinSet::new();
    for call in 0..1000 {
        let (cache, id) = (Arc::clone(&fixture.cache), ids[call % 45].clone());
        calls.spawn(async move {
            let read = cache.read(&[&id], None).await.remove(0);
            assert_eq!(read.unwrap().unwrap().expose(), id);
        });
    }
    calls.join_all().await;
    assert_eq!(fixture.sizes(), [20, 20, 5]);
}

#[tokio::test]
async fn a_rejected_value_is_read_again_once() {
    let lookup = in_turn([
        present("old"),
        present("new"),
        present("new"),
        present("newest"),
    ]);
    let fixture = Fixture::new(lookup);
    let old = fixture.read("A").await.unwrap().unwrap();
    let reread = async |rejected: &Secret| fixture.reread("A", rejected).await;
    // The value is rejected in two calls at once: only one of them reads the store.
    let both = tokio::join!(reread(&old), reread(&old));
    assert_eq!(both, (Some("new".into()), Some("new".into())));
    assert_eq!(fixture.requests(), 2);
    assert_eq!(reread(&old).await.as_deref(), Some("new"), "already cached");
    let new = Secret::from("new");
    assert_eq!(reread(&new).await, None, "read a moment ago");
    assert_eq!(fixture.requests(), 2);
    wait(NEGATIVE_TTL);
    assert_eq!(reread(&new).await, None, "read, and still the same");
    wait(NEGATIVE_TTL);
    assert_eq!(reread(&new).await.as_deref(), Some("newest"));
    assert_eq!(fixture.text("A").await, "newest", "the new value is cached");
}

#[tokio::test]
async fn a_cancelled_call_does_not_cancel_the_read() {
    let fixture = Fixture::new(|_| present("value"));
    let cancelled = tokio::time::timeout(LITTLE / 10, fixture.read("A")).await;
    assert!(cancelled.is_err());
    assert_eq!(fixture.text("A").await, "value");
    assert_eq!(fixture.requests(), 1);
}

// With tokio's paused clock: on a busy machine, a panic can take longer than the limit.
#[tokio::test(start_paused = true)]
async fn a_store_with_a_bug_is_an_error_and_no_hang() {
    let panics = |_: &str| -> Reply { panic!("a bug") };
    let fixture = |lookup: fn(&str) -> Reply| {
        Fixture::with(lookup, &[], |secrets| secrets.timeout(LITTLE * 2))
    };
    for (lookup, text) in [
        (panics as fn(&str) -> Reply, "the store panicked"),
        (|_| Reply::Never, "no response within 20 ms"),
        (|_| Reply::Nothing, "returned no result"),
    ] {
        let fixture = fixture(lookup);
        for _ in 0..2 {
            let error = fixture.read("A").await.unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
            assert!(error.is_temporary());
        }
    }
    // A call that has little time left waits for half of it.
    let cache = fixture(|_| Reply::Never).cache;
    let error = cache.read(&["A"], Some(LITTLE)).await.remove(0);
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("no response within 5 ms"), "{error}");
}

#[tokio::test]
async fn the_last_good_value_replaces_a_missing_response() {
    let lookup = in_turn([present("good").into(), Reply::Never]);
    let fixture = Fixture::with(lookup, &[], |secrets| secrets.timeout(LITTLE * 5));
    let good = fixture.read("A").await.unwrap().unwrap();
    assert!(fixture.reread("A", &good).await.is_none());
    assert_eq!(fixture.text("A").await, "good", "it may be good elsewhere");
    wait(TTL);
    // The call's time ends before the store's.
    let read = fixture.cache.read(&["A"], Some(LITTLE)).await.remove(0);
    assert!(read.unwrap().unwrap().is(&good));
    assert_eq!(fixture.text("A").await, "good");
}

#[tokio::test]
async fn without_caching_a_rejected_value_is_read_again_alone_each_time() {
    let lookup = in_turn([present("one"), present("two"), present("three")]);
    let fixture = Fixture::with(lookup, &["B".to_owned()], |it| it.cache_for(Duration::ZERO));
    for (rejected, newer) in [("zero", "one"), ("one", "two"), ("two", "three")] {
        let value = fixture.reread("A", &Secret::from(rejected)).await;
        assert_eq!(value.as_deref(), Some(newer));
    }
    assert_eq!(fixture.sizes(), [1, 1, 1], "nothing else is read");
}

#[tokio::test]
async fn secrets_rotated_together_are_read_together() {
    let ids = ["SID".to_owned(), "TOKEN".to_owned()];
    let mut version = 0;
    let lookup = move |id: &str| {
        version += 1;
        present(format!("{id}-{}", (version + 1) / 2))
    };
    let fixture = Fixture::with(lookup, &ids, |secrets| secrets);
    assert_eq!(fixture.text("SID").await, "SID-1");
    let old = fixture.read("TOKEN").await.unwrap().unwrap();
    let new = fixture.cache.reread("TOKEN", &old, TTL).await.unwrap();
    assert_eq!(new.expose(), "TOKEN-2");
    assert_eq!(fixture.text("SID").await, "SID-2");
    assert_eq!(fixture.sizes(), [2, 2]);
}

#[tokio::test]
async fn declared_secrets_are_cached_before_the_first_call() {
    let ids = ["A".to_owned(), "B".to_owned()];
    let fixture = Fixture::with(|id| present(id), &ids, |secrets| secrets);
    fixture.cache.warm_up(&[]).await;
    assert_eq!(fixture.text("A").await, "A");
    assert_eq!(fixture.text("B").await, "B");
    assert_eq!(fixture.requests(), 1);
    let none = Fixture::with(|id| present(id), &ids, |it| it.cache_for(Duration::ZERO));
    none.cache.warm_up(&[]).await;
    assert_eq!(none.requests(), 0, "no values are cached, so none are read");
}

#[tokio::test]
async fn a_missing_secret_does_not_affect_others() {
    let ids = ["A", "B", "C"].map(str::to_owned);
    let lookup = |id: &str| match id {
        "A" => Ok(None),
        "B" => Err(StoreError::denied("x")),
        _ => present(id),
    };
    let fixture = Fixture::with(lookup, &ids, |secrets| secrets);
    for _ in 0..3 {
        for _ in 0..5 {
            assert_eq!(fixture.text("C").await, "C");
            assert_eq!(fixture.text("A").await, "none");
            assert_eq!(fixture.text("B").await, "access denied: x");
        }
        wait(NEGATIVE_TTL);
    }
    // C is not read again before it is due; the others are read together.
    let requests = fixture.requests.lock().unwrap().clone();
    assert_eq!(
        requests,
        [vec!["A", "B", "C"], vec!["A", "B"], vec!["A", "B"]]
    );
}

#[tokio::test]
async fn a_call_waits_for_a_read_in_progress_and_reads_only_the_rest() {
    let ids = ["A".to_owned()];
    let fixture = Fixture::with(|id| present(id), &ids, |secrets| secrets);
    // C is not declared, so no other call reads it.
    let both = tokio::join!(fixture.text("A"), async {
        fixture.cache.read(&["A", "C", "C"], None).await
    });
    assert_eq!(both.0, "A");
    let values = both.1.into_iter().map(|read| read.unwrap().unwrap());
    let values: Vec<_> = values.map(|value| value.expose().to_owned()).collect();
    assert_eq!(values, ["A", "C", "C"]);
    assert_eq!(*fixture.requests.lock().unwrap(), [["A"], ["C"]]);
}
