//! Tests of the cache, with a clock and a store that each test controls.

use std::{cell::Cell, sync::LazyLock};

use tokio::task::JoinSet;

use super::*;
use crate::secrets::{ReadFuture, SecretStore};

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

fn wait(time: Duration) {
    MOVED.set(MOVED.get() + time);
}

/// Parses an error from the word for it in a table.
fn error(word: &str) -> Option<StoreError> {
    Some(match word {
        "denied" => StoreError::denied("x"),
        "down" => StoreError::unavailable("x"),
        "throttled" => StoreError::throttled("x"),
        _ => return None,
    })
}

/// The behaviour of a store for an id, in a word: `none`, that of an [`error`], `panic`, `fewer`
/// results than ids, `never` a response, or else a value.
type Lookup = Box<dyn FnMut(&str) -> String + Send>;

struct Store {
    lookup: Mutex<Lookup>,
    /// The ids of each request.
    requests: Arc<Mutex<Vec<Vec<String>>>>,
}

impl SecretStore for Store {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        Box::pin(async move {
            self.requests.lock().unwrap().push(ids.to_vec());
            tokio::time::sleep(LITTLE).await;
            let mut results = Vec::new();
            for id in ids {
                let word = self.lookup.lock().unwrap()(id);
                results.push(match &*word {
                    "none" => Ok(None),
                    "panic" => panic!("a bug"),
                    "fewer" => continue,
                    "never" => std::future::pending().await,
                    word => error(word).map_or(Ok(Some(word.into())), Err),
                });
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
    requests: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Fixture {
    fn new(
        declared: &[impl ToString],
        lookup: impl FnMut(&str) -> String + Send + 'static,
    ) -> Self {
        let requests = Arc::<Mutex<_>>::default();
        let store = Store {
            lookup: Mutex::new(Box::new(lookup)),
            requests: Arc::clone(&requests),
        };
        let clock = Clock::new(std::time::SystemTime::now, instant, uuid::Uuid::new_v4);
        let declared = declared.iter().map(ToString::to_string).collect();
        let cache = SecretCache::new(Secrets::from_store(store), declared, clock);
        Self { cache, requests }
    }

    /// The store behaves in one way after the other, and repeats the last one.
    fn in_turn(words: &str) -> Self {
        let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
        let mut next = 0;
        Self::new(&[""; 0], move |_| {
            next += 1;
            words[next.min(words.len()) - 1].clone()
        })
    }

    async fn read(&self, id: &str) -> ReadResult {
        self.cache.read(&[id], None).await.remove(0)
    }

    /// Returns the value, or the word for the result.
    async fn word(&self, id: &str) -> String {
        match self.read(id).await {
            Ok(Some(secret)) => secret.expose().to_owned(),
            Ok(None) => "none".to_owned(),
            Err(read) => {
                let mut words = ["denied", "down", "throttled"].into_iter();
                let word = words.find(|it| error(it) == Some(read.clone()));
                word.unwrap().to_owned()
            }
        }
    }

    /// Returns the ids of each request, without spaces between them.
    fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|ids| ids.concat()).collect()
    }

    async fn reread(&self, id: &str, rejected: &Secret) -> Option<String> {
        let value = self.cache.reread(id, rejected, TTL).await?;
        Some(value.expose().to_owned())
    }
}

/// The results of the store one after the other; then for each read of the cache the seconds before it, its
/// result, and the number of requests so far.
const RESULTS: &str = "\
old new | 0 old 1, 299.99 old 1, 0.01 new 2
down value | 0 down 1, 0 down 1, 1 value 2
good down | 0 good 1, 300 good 2, 0 good 2, 1 good 3, 3598.99 good 4, 1 down 5
good throttled | 0 good 1, 300 good 2, 0 good 2, 1 good 3, 3600 throttled 4
good none restored | 0 good 1, 300 none 2, 0 none 2, 10 restored 3
good denied restored | 0 good 1, 300 denied 2, 0 denied 2, 10 restored 3";

/// Values expire. After an error, the store is left alone for a moment, and the last good value replaces
/// temporary errors for an hour. Absence and denial are remembered briefly, and replace a good value.
#[tokio::test]
async fn a_result_is_used_as_long_as_its_kind_allows() {
    let seconds = |text: &str| Duration::from_secs_f64(text.parse().unwrap());
    for row in RESULTS.lines() {
        let (results, reads) = row.split_once(" | ").unwrap();
        let fixture = Fixture::in_turn(results);
        for read in reads.split(", ") {
            let (time, expected) = read.split_once(' ').unwrap();
            wait(seconds(time));
            let word = fixture.word("A").await;
            let actual = format!("{word} {}", fixture.requests().len());
            assert_eq!(actual, expected, "{row}");
        }
    }
}

#[tokio::test]
async fn a_thousand_calls_make_one_request_for_each_full_batch() {
    let ids: Vec<_> = (0..45).map(|i| format!("ID_{i}")).collect();
    let fixture = Fixture::new(&ids, str::to_owned);
    let mut calls = JoinSet::new();
    for call in 0..1000 {
        let (cache, id) = (Arc::clone(&fixture.cache), ids[call % 45].clone());
        calls.spawn(async move {
            let read = cache.read(&[&id], None).await.remove(0);
            assert_eq!(read.unwrap().unwrap().expose(), id);
        });
    }
    calls.join_all().await;
    let requests = fixture.requests.lock().unwrap();
    let sizes: Vec<_> = requests.iter().map(Vec::len).collect();
    assert_eq!(sizes, [20, 20, 5]);
}

#[tokio::test]
async fn a_rejected_value_is_read_again_once() {
    let shortest = Duration::from_secs(10);
    let fixture = Fixture::in_turn("old new new newest");
    let old = fixture.read("A").await.unwrap().unwrap();
    let reread = async |rejected: &Secret| fixture.reread("A", rejected).await;
    // The value is rejected in two calls at once: only one of them reads the store.
    let both = tokio::join!(reread(&old), reread(&old));
    assert_eq!(both, (Some("new".into()), Some("new".into())));
    assert_eq!(fixture.requests().len(), 2);
    assert_eq!(reread(&old).await.as_deref(), Some("new"), "already cached");
    let new = Secret::from("new");
    assert_eq!(reread(&new).await, None, "read a moment ago");
    assert_eq!(fixture.requests().len(), 2);
    wait(shortest);
    assert_eq!(reread(&new).await, None, "read, and still the same");
    wait(shortest);
    assert_eq!(reread(&new).await.as_deref(), Some("newest"));
    assert_eq!(fixture.word("A").await, "newest", "the new value is cached");
}

#[tokio::test]
async fn a_cancelled_call_does_not_cancel_the_read() {
    let fixture = Fixture::in_turn("value");
    let cancelled = tokio::time::timeout(LITTLE / 10, fixture.read("A")).await;
    assert!(cancelled.is_err());
    assert_eq!(fixture.word("A").await, "value");
    assert_eq!(fixture.requests(), ["A"]);
}

// With tokio's paused clock: on a busy machine, a panic can take longer than the limit.
#[tokio::test(start_paused = true)]
async fn a_store_with_a_bug_is_an_error_and_no_hang() {
    for (word, text) in [
        ("panic", "the store panicked"),
        ("never", "no response within 3000 ms"),
        ("fewer", "returned no result"),
    ] {
        let fixture = Fixture::in_turn(word);
        for _ in 0..2 {
            let error = fixture.read("A").await.unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
            assert!(error.is_temporary());
        }
    }
    // A call that has little time left waits for half of it.
    let cache = Fixture::in_turn("never").cache;
    let error = cache.read(&["A"], Some(LITTLE)).await.remove(0);
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("no response within 5 ms"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_last_good_value_replaces_a_missing_response() {
    let fixture = Fixture::in_turn("good never");
    let good = fixture.read("A").await.unwrap().unwrap();
    assert!(fixture.reread("A", &good).await.is_none());
    assert_eq!(fixture.word("A").await, "good", "it may be good elsewhere");
    wait(TTL);
    // The call's time ends before the store's.
    let read = fixture.cache.read(&["A"], Some(LITTLE)).await.remove(0);
    assert!(read.unwrap().unwrap().is(&good));
    assert_eq!(fixture.word("A").await, "good");
}

#[tokio::test]
async fn secrets_rotated_together_are_read_together() {
    let mut version = 0;
    let fixture = Fixture::new(&["SID", "TOKEN"], move |id| {
        version += 1;
        format!("{id}-{}", (version + 1) / 2)
    });
    assert_eq!(fixture.word("SID").await, "SID-1");
    let old = fixture.read("TOKEN").await.unwrap().unwrap();
    let new = fixture.reread("TOKEN", &old).await;
    assert_eq!(new.as_deref(), Some("TOKEN-2"));
    assert_eq!(fixture.word("SID").await, "SID-2");
    assert_eq!(fixture.requests(), ["SIDTOKEN", "SIDTOKEN"]);
}

#[tokio::test]
async fn declared_secrets_are_cached_before_the_first_call() {
    let fixture = Fixture::new(&["A", "B"], str::to_owned);
    fixture.cache.warm_up(&[]).await;
    assert_eq!(fixture.word("A").await, "A");
    assert_eq!(fixture.word("B").await, "B");
    assert_eq!(fixture.requests(), ["AB"]);
}

#[tokio::test]
async fn a_missing_secret_does_not_affect_others() {
    let fixture = Fixture::new(&["A", "B", "C"], |id| {
        let word = match id {
            "A" => "none",
            "B" => "denied",
            other => other,
        };
        word.to_owned()
    });
    for _ in 0..3 {
        for _ in 0..5 {
            for (id, word) in [("C", "C"), ("A", "none"), ("B", "denied")] {
                assert_eq!(fixture.word(id).await, word);
            }
        }
        wait(Duration::from_secs(10));
    }
    // C is not read again before it is due; the others are read together.
    assert_eq!(fixture.requests(), ["ABC", "AB", "AB"]);
}

#[tokio::test]
async fn a_call_waits_for_a_read_in_progress_and_reads_only_the_rest() {
    let fixture = Fixture::new(&["A"], str::to_owned);
    // C is not declared, so no other call reads it.
    let both = tokio::join!(fixture.word("A"), async {
        fixture.cache.read(&["A", "C", "C"], None).await
    });
    assert_eq!(both.0, "A");
    let values = both.1.into_iter().map(|read| read.unwrap().unwrap());
    let values: Vec<_> = values.map(|value| value.expose().to_owned()).collect();
    assert_eq!(values, ["A", "C", "C"]);
    assert_eq!(fixture.requests(), ["A", "C"]);
}
