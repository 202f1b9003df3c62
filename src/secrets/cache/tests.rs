//! The cache, with a clock and a store that do what a test says.

use std::{cell::Cell, sync::LazyLock, time::Instant};

use tokio::task::JoinSet;

use super::{
    entry::{BRIEFLY, PAUSE},
    *,
};
use crate::secrets::{ReadFuture, SecretStore};

const TTL: Duration = Duration::from_mins(5);
const LITTLE: Duration = Duration::from_millis(10);

thread_local! {
    /// How far the test has moved the clock. Its tasks run on its own thread.
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

/// What a store says of an id.
type Says = Box<dyn FnMut(&str) -> ReadResult + Send>;

struct Store {
    says: Mutex<Says>,
    requests: Requests,
}

impl SecretStore for Store {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        Box::pin(async move {
            self.requests.lock().unwrap().push(ids.to_vec());
            tokio::time::sleep(LITTLE).await;
            let mut says = self.says.lock().unwrap();
            ids.iter().map(|id| says(id)).collect()
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
    fn new(says: impl FnMut(&str) -> ReadResult + Send + 'static) -> Self {
        Self::with(says, &[], |secrets| secrets)
    }

    fn with(
        says: impl FnMut(&str) -> ReadResult + Send + 'static,
        declared: &[String],
        change: impl FnOnce(Secrets) -> Secrets,
    ) -> Self {
        let requests = Requests::default();
        let store = Store {
            says: Mutex::new(Box::new(says)),
            requests: Arc::clone(&requests),
        };
        let secrets = change(Secrets::from_store(store));
        let cache = SecretCache::new(secrets, declared.to_vec(), clock());
        Self { cache, requests }
    }

    async fn read(&self, id: &str) -> ReadResult {
        self.cache.read(&[id], None).await.remove(0)
    }

    /// The value, or the error's text.
    async fn says(&self, id: &str) -> String {
        match self.read(id).await {
            Ok(Some(secret)) => secret.expose().to_owned(),
            Ok(None) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// How many ids each request had.
    fn sizes(&self) -> Vec<usize> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(Vec::len).collect()
    }

    async fn reread(&self, id: &str, refused: &Secret) -> Option<String> {
        let value = self.cache.reread(id, refused, TTL).await?;
        Some(value.expose().to_owned())
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "one of the things that a store can say"
)]
fn there(value: impl Into<Secret>) -> ReadResult {
    Ok(Some(value.into()))
}

/// Says one thing after the other, the last one again and again.
fn in_turn<const N: usize>(reads: [ReadResult; N]) -> impl FnMut(&str) -> ReadResult + Send {
    let mut next = 0;
    move |_| {
        let read = reads[next.min(N - 1)].clone();
        next += 1;
        read
    }
}

#[tokio::test]
async fn a_value_is_used_for_its_time_and_then_read_again() {
    let fixture = Fixture::new(in_turn([there("old"), there("new")]));
    assert_eq!(fixture.says("A").await, "old");
    wait(TTL.saturating_sub(LITTLE));
    assert_eq!(fixture.says("A").await, "old");
    assert_eq!(fixture.requests(), 1);
    wait(LITTLE);
    assert_eq!(fixture.says("A").await, "new");
    assert_eq!(fixture.requests(), 2);
}

#[tokio::test]
async fn nothing_is_kept_where_that_is_wished() {
    let says = in_turn([there("one"), there("two"), Err(StoreError::throttled("x"))]);
    let fixture = Fixture::with(says, &[], |it| it.cache_for(Duration::ZERO));
    assert_eq!(fixture.says("A").await, "one");
    assert_eq!(fixture.says("A").await, "two");
    assert_eq!(fixture.says("A").await, "throttled: x");
}

#[tokio::test]
async fn a_thousand_calls_make_one_request_for_each_full_batch() {
    let ids: Vec<_> = (0..45).map(|i| format!("ID_{i}")).collect();
    let fixture = Fixture::with(|id| there(id), &ids, |secrets| secrets);
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
async fn one_call_for_many_makes_as_few_requests_as_there_can_be() {
    let fixture = Fixture::new(|id| there(id));
    let ids: Vec<_> = (0..41).map(|i| format!("ID_{i}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let reads = fixture.cache.read(&ids, None).await;
    assert_eq!(reads.len(), 41);
    assert_eq!(fixture.sizes(), [20, 20, 1]);
}

#[tokio::test]
async fn the_last_good_value_bridges_a_bad_time_but_not_for_ever() {
    for error in [StoreError::throttled("x"), StoreError::unavailable("x")] {
        let says = in_turn([there("good"), Err(error)]);
        let stale = Duration::from_mins(1);
        let fixture = Fixture::with(says, &[], |secrets| secrets.stale_for(stale));
        assert_eq!(fixture.says("A").await, "good");
        wait(TTL);
        assert_eq!(fixture.says("A").await, "good");
        assert_eq!(fixture.says("A").await, "good");
        assert_eq!(
            fixture.requests(),
            2,
            "the store is left alone for a moment"
        );
        wait(PAUSE);
        assert_eq!(fixture.says("A").await, "good");
        assert_eq!(fixture.requests(), 3);
        wait(stale);
        assert!(fixture.says("A").await.ends_with(": x"));
    }
}

#[tokio::test]
async fn a_store_that_comes_back_is_believed() {
    let down = || Err(StoreError::unavailable("x"));
    let fixture = Fixture::new(in_turn([down(), there("value")]));
    assert_eq!(fixture.says("A").await, "the store is not available: x");
    assert_eq!(fixture.says("A").await, "the store is not available: x");
    assert_eq!(fixture.requests(), 1);
    wait(PAUSE);
    assert_eq!(fixture.says("A").await, "value");
}

#[tokio::test]
async fn absence_and_refusal_are_remembered_briefly_and_end_a_good_value() {
    let denied = StoreError::denied("x");
    for (read, text) in [(Ok(None), "none"), (Err(denied), "access denied: x")] {
        let fixture = Fixture::new(in_turn([there("good"), read, there("back")]));
        assert_eq!(fixture.says("A").await, "good");
        wait(TTL);
        assert_eq!(fixture.says("A").await, text);
        assert_eq!(fixture.says("A").await, text);
        assert_eq!(fixture.requests(), 2);
        wait(BRIEFLY);
        assert_eq!(fixture.says("A").await, "back");
    }
}

#[tokio::test]
async fn a_refused_value_is_read_again_once() {
    let says = in_turn([there("old"), there("new"), there("new"), there("newest")]);
    let fixture = Fixture::new(says);
    let old = fixture.read("A").await.unwrap().unwrap();
    let reread = async |refused: &Secret| fixture.reread("A", refused).await;
    // Several calls at once are refused: one of them asks.
    let both = tokio::join!(reread(&old), reread(&old));
    assert_eq!(both, (Some("new".into()), Some("new".into())));
    assert_eq!(fixture.requests(), 2);
    assert_eq!(reread(&old).await.as_deref(), Some("new"), "known by now");
    let new = Secret::from("new");
    assert_eq!(reread(&new).await, None, "asked a moment ago");
    assert_eq!(fixture.requests(), 2);
    wait(BRIEFLY);
    assert_eq!(reread(&new).await, None, "asked, and still the same");
    wait(BRIEFLY);
    assert_eq!(reread(&new).await.as_deref(), Some("newest"));
    assert_eq!(fixture.says("A").await, "newest", "what was read is kept");
}

#[tokio::test]
async fn a_call_that_is_cut_off_takes_nothing_with_it() {
    let fixture = Fixture::new(|_| there("value"));
    let cut_off = tokio::time::timeout(LITTLE / 10, fixture.read("A")).await;
    assert!(cut_off.is_err());
    assert_eq!(fixture.says("A").await, "value");
    assert_eq!(fixture.requests(), 1);
}

/// A store with a mistake in it.
enum Broken {
    Panics,
    Hangs,
    Forgets,
}

impl SecretStore for Broken {
    fn read<'a>(&'a self, _: &'a [String]) -> ReadFuture<'a> {
        match self {
            Self::Panics => Box::pin(async { panic!("a mistake") }),
            Self::Hangs => Box::pin(std::future::pending()),
            Self::Forgets => Box::pin(async { Vec::new() }),
        }
    }

    fn location(&self, id: &str) -> String {
        id.to_owned()
    }
}

#[tokio::test]
async fn a_store_with_a_mistake_is_an_error_and_no_hang() {
    for (store, text) in [
        (Broken::Panics, "stopped because of an error"),
        (Broken::Hangs, "no answer within 20 ms"),
        (Broken::Forgets, "left it out"),
    ] {
        let secrets = Secrets::from_store(store).timeout(LITTLE * 2);
        let cache = SecretCache::new(secrets, Vec::new(), clock());
        for _ in 0..2 {
            let error = cache.read(&["A"], None).await.remove(0).unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
            assert!(error.is_temporary());
        }
    }
    // A call that has little time left waits half of it.
    let cache = SecretCache::new(Secrets::from_store(Broken::Hangs), Vec::new(), clock());
    let error = cache
        .read(&["A"], Some(LITTLE))
        .await
        .remove(0)
        .unwrap_err();
    assert!(
        error.to_string().ends_with("no answer within 5 ms"),
        "{error}"
    );
}

/// Answers once, and then never again.
struct Silent(Mutex<bool>);

impl SecretStore for Silent {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        if std::mem::replace(&mut *self.0.lock().unwrap(), true) {
            return Box::pin(std::future::pending());
        }
        Box::pin(async move { ids.iter().map(|id| there(&**id)).collect() })
    }

    fn location(&self, id: &str) -> String {
        id.to_owned()
    }
}

#[tokio::test]
async fn a_store_that_has_become_silent_is_bridged_too() {
    let secrets = Secrets::from_store(Silent(Mutex::default())).timeout(LITTLE * 5);
    let cache = SecretCache::new(secrets, Vec::new(), clock());
    let read = async |left| cache.read(&["A"], left).await.remove(0);
    assert!(read(None).await.is_ok());
    wait(TTL);
    // The call's time ends before the store's.
    assert!(read(Some(LITTLE)).await.unwrap().is_some());
    assert!(read(None).await.unwrap().is_some());
}

#[tokio::test]
async fn without_a_cache_absence_and_bad_times_are_remembered_all_the_same() {
    let down = || Err(StoreError::unavailable("x"));
    let says = in_turn([down(), Ok(None), there("one"), there("two"), there("three")]);
    let fixture = Fixture::with(says, &["B".to_owned()], |it| it.cache_for(Duration::ZERO));
    for (text, time) in [("the store is not available: x", PAUSE), ("none", BRIEFLY)] {
        assert_eq!(fixture.says("A").await, text);
        assert_eq!(fixture.says("A").await, text);
        wait(time);
    }
    assert_eq!(fixture.sizes(), [1, 1], "nothing else is read");
    for (refused, newer) in [("zero", "one"), ("one", "two"), ("two", "three")] {
        let value = fixture.reread("A", &Secret::from(refused)).await;
        assert_eq!(value.as_deref(), Some(newer));
    }
}

#[tokio::test]
async fn a_refused_value_goes_on_where_the_store_is_silent() {
    let secrets = Secrets::from_store(Silent(Mutex::default())).timeout(LITTLE * 2);
    let cache = SecretCache::new(secrets, Vec::new(), clock());
    let read = async || cache.read(&["A"], None).await.remove(0).unwrap().unwrap();
    let value = read().await;
    assert!(cache.reread("A", &value, TTL).await.is_none());
    assert!(read().await.is(&value), "it may be good elsewhere");
}

#[tokio::test]
async fn what_was_rotated_together_is_read_together() {
    let ids = ["SID".to_owned(), "TOKEN".to_owned()];
    let mut version = 0;
    let says = move |id: &str| {
        version += 1;
        there(format!("{id}-{}", (version + 1) / 2))
    };
    let fixture = Fixture::with(says, &ids, |secrets| secrets);
    assert_eq!(fixture.says("SID").await, "SID-1");
    let old = fixture.read("TOKEN").await.unwrap().unwrap();
    let new = fixture.cache.reread("TOKEN", &old, TTL).await.unwrap();
    assert_eq!(new.expose(), "TOKEN-2");
    assert_eq!(fixture.says("SID").await, "SID-2");
    assert_eq!(fixture.sizes(), [2, 2]);
}

#[tokio::test]
async fn what_is_declared_is_there_before_the_first_call() {
    let ids = ["A".to_owned(), "B".to_owned()];
    let fixture = Fixture::with(|id| there(id), &ids, |secrets| secrets);
    fixture.cache.warm().await;
    assert_eq!(fixture.says("A").await, "A");
    assert_eq!(fixture.says("B").await, "B");
    assert_eq!(fixture.requests(), 1);
    let none = Fixture::with(|id| there(id), &ids, |it| it.cache_for(Duration::ZERO));
    none.cache.warm().await;
    assert_eq!(none.requests(), 0, "what is not kept is not read ahead");
}

#[tokio::test]
async fn a_secret_that_is_not_there_costs_the_others_nothing() {
    let ids = ["A", "B", "C"].map(str::to_owned);
    let says = |id: &str| match id {
        "A" => Ok(None),
        "B" => Err(StoreError::denied("x")),
        _ => there(id),
    };
    let fixture = Fixture::with(says, &ids, |secrets| secrets);
    for _ in 0..3 {
        for _ in 0..5 {
            assert_eq!(fixture.says("C").await, "C");
            assert_eq!(fixture.says("A").await, "none");
            assert_eq!(fixture.says("B").await, "access denied: x");
        }
        wait(BRIEFLY);
    }
    // C is not read again before its time; what else is due comes along.
    let requests = fixture.requests.lock().unwrap().clone();
    assert_eq!(
        requests,
        [vec!["A", "B", "C"], vec!["A", "B"], vec!["A", "B"]]
    );
}

#[tokio::test]
async fn what_one_call_reads_another_waits_for_and_reads_what_is_missing() {
    let ids = ["A".to_owned()];
    let fixture = Fixture::with(|id| there(id), &ids, |secrets| secrets);
    // C is not declared, and nobody else reads it.
    let both = tokio::join!(fixture.says("A"), async {
        fixture.cache.read(&["A", "C", "C"], None).await
    });
    assert_eq!(both.0, "A");
    let values = both.1.into_iter().map(|read| read.unwrap().unwrap());
    let values: Vec<_> = values.map(|value| value.expose().to_owned()).collect();
    assert_eq!(values, ["A", "C", "C"]);
    assert_eq!(*fixture.requests.lock().unwrap(), [["A"], ["C"]]);
}

/// Reads one secret at a time, and never the one that is called `NEVER`.
struct Partial;

impl SecretStore for Partial {
    fn read<'a>(&'a self, ids: &'a [String]) -> ReadFuture<'a> {
        match &*ids[0] {
            "NEVER" => Box::pin(std::future::pending()),
            id => Box::pin(std::future::ready(vec![there(id)])),
        }
    }

    fn location(&self, id: &str) -> String {
        id.to_owned()
    }
}

#[tokio::test]
async fn a_secret_that_never_comes_takes_no_other_with_it() {
    let ids = ["A", "NEVER"].map(str::to_owned);
    let secrets = Secrets::from_store(Partial).timeout(LITTLE * 5);
    let cache = SecretCache::new(secrets, ids.to_vec(), clock());
    // The call's time ends before the store's.
    let reads = cache.read(&["A", "NEVER"], Some(LITTLE)).await;
    let [Ok(Some(value)), Err(error)] = &reads[..] else {
        panic!("{reads:?}");
    };
    assert_eq!(value.expose(), "A");
    assert!(
        error.to_string().ends_with("no answer within 5 ms"),
        "{error}"
    );
}
