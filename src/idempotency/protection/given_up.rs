//! Claims that may be in the store although nothing runs under them.
//!
//! A store may write a claim and its answer be lost, and the request to release it as well. The
//! claim would say, until it is free, that the call runs or was cut off. This process knows better.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use super::Protection;
use crate::{
    idempotency::{CallStore, Record},
    store_error::within,
};

/// More than that are there only while a store is down, when most are not written at all.
const MOST: usize = 1000;

/// Claims, each with the time from which the store holds it against nobody.
#[derive(Default)]
pub(super) struct GivenUp(Mutex<HashMap<String, SystemTime>>);

impl GivenUp {
    pub(super) fn remember(&self, record: &Record, now: SystemTime) {
        let mut claims = self.lock();
        if claims.len() >= MOST {
            claims.retain(|_, free_at| *free_at > now);
        }
        if claims.len() >= MOST
            && let Some(first) = claims.iter().min_by_key(|(_, free_at)| **free_at)
        {
            let first = first.0.clone();
            claims.remove(&first);
        }
        claims.insert(record.claim.clone(), record.free_at);
    }

    pub(super) fn contains(&self, claim: &str) -> bool {
        self.lock().contains_key(claim)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, SystemTime>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Protection {
    /// Takes back a claim that may have been written although the store did not say so. Its call
    /// must not run any more.
    ///
    /// Before the answer leaves: afterwards the platform may stop the process.
    pub(super) async fn give_up(
        &self,
        store: &Arc<dyn CallStore>,
        key: &str,
        record: &Record,
        deadline: Option<SystemTime>,
    ) {
        // Even if the release goes well: the claim may still be on its way to the store.
        self.given_up.remember(record, self.host.now());
        let limit = self.time_to_settle(deadline);
        let released = within(limit, store.release(key, &record.claim)).await;
        if let Err(error) = released.flatten() {
            tracing::debug!(%error, "a claim that was given up may be in the store");
        }
    }

    /// Takes back such a claim while its call runs without it.
    pub(super) fn release_beside(&self, store: &Arc<dyn CallStore>, key: String, record: Record) {
        let (store, limit) = (Arc::clone(store), self.idempotency.timeout);
        tokio::spawn(async move {
            // If that fails too, the claim ends by itself.
            let _ = within(limit, store.release(&key, &record.claim))
                .await
                .flatten();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use serde_json::{Value, json};

    use super::*;
    use crate::{
        Context, Failure, Server, StoreError, Tool, Toolkit,
        call::rejection::Rejection,
        clock::FIXED,
        idempotency::{
            Doing, Idempotency, Identity, State,
            memory::Memory,
            protection::{Claimed, Limits},
        },
        testing::Function,
        tool::repeats::Policy,
    };

    /// What becomes of releases.
    #[derive(Clone, Copy, PartialEq)]
    enum Releases {
        Slow,
        Lost,
        Unanswered,
    }

    /// A store that writes claims, and loses the answers to the first ones.
    struct Losing {
        memory: Memory,
        answers: AtomicUsize,
        requests: AtomicUsize,
        releases: Releases,
    }

    impl Losing {
        fn new(claims: usize, releases: Releases) -> Self {
            Self {
                memory: Memory::default(),
                answers: AtomicUsize::new(claims),
                requests: AtomicUsize::new(claims),
                releases,
            }
        }
    }

    fn one_less(count: &AtomicUsize) -> bool {
        let less = |count: usize| count.checked_sub(1);
        count
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            .is_ok()
    }

    impl CallStore for Losing {
        fn claim<'a>(
            &'a self,
            key: &'a str,
            record: &'a Record,
            now: SystemTime,
        ) -> Doing<'a, Option<Record>> {
            Box::pin(async move {
                let held = self.memory.claim(key, record, now).await?;
                if one_less(&self.answers) {
                    return Err(StoreError::unavailable("the answer was lost"));
                }
                Ok(held)
            })
        }

        fn finish<'a>(&'a self, key: &'a str, record: &'a Record) -> Doing<'a, bool> {
            self.memory.finish(key, record)
        }

        fn release<'a>(&'a self, key: &'a str, claim: &'a str) -> Doing<'a, ()> {
            Box::pin(async move {
                if one_less(&self.requests) {
                    match self.releases {
                        Releases::Slow => tokio::time::sleep(Duration::from_millis(50)).await,
                        Releases::Lost => return Err(StoreError::unavailable("lost")),
                        Releases::Unanswered => return pending().await,
                    }
                }
                self.memory.release(key, claim).await
            })
        }
    }

    fn identity() -> Identity {
        Identity {
            key: "key".into(),
            fingerprint: "print".into(),
            owner: "owner".into(),
        }
    }

    /// A claim by a call that has not much time.
    async fn claim(protection: &Protection) -> Result<Claimed, Rejection> {
        let limits = || Limits {
            tool: Duration::from_secs(1),
            deadline: Some(FIXED.now() + Duration::from_millis(400)),
        };
        protection
            .claim(identity(), Policy::AtMostOnce, limits)
            .await
    }

    #[tokio::test]
    async fn a_call_whose_claim_and_release_were_lost_runs_once_when_it_is_repeated() {
        // Of two attempts the second one meets the claim of the first, and is lost itself.
        for lost in [1, 2] {
            for is_at_most_once in [false, true] {
                let effects = Arc::new(AtomicUsize::new(0));
                let counted = Arc::clone(&effects);
                let act = move |_: Value, _: Context| {
                    let effect = counted.fetch_add(1, Ordering::SeqCst) + 1;
                    async move { Ok::<_, Failure>(json!(effect)) }
                };
                let object = json!({"type": "object"});
                let tool = Tool::dynamic("Act.Do@1.0.0", "Acts.", object, json!({}), act);
                let tool = if is_at_most_once {
                    tool.run_at_most_once()
                } else {
                    tool
                };
                let store = Idempotency::in_store(Losing::new(lost, Releases::Lost));
                let server = Server::new(Toolkit::new([tool]).unwrap());
                let function = Function::new(server.idempotency(store.wait_for(Duration::ZERO)));
                let body = json!({"tool_id": "Act.Do", "call_id": "lost", "input": {}});
                let event = json!({
                    "version": "2.0", "rawPath": "/tools/call", "rawQueryString": "",
                    "headers": {}, "body": body.to_string(), "isBase64Encoded": false,
                    "requestContext": {"stage": "$default", "timeEpoch": 0,
                                       "http": {"method": "POST", "path": "/tools/call"}},
                });
                let call = async || function.answer(&event.to_string()).await.unwrap();
                for _ in 0..lost {
                    assert_eq!(call().await.status, 400, "nothing runs");
                }
                assert_eq!(effects.load(Ordering::SeqCst), 0);
                let answer = call().await;
                assert_eq!(answer.body["value"], 1, "{answer:?}");
                let again = call().await;
                assert_eq!(again.body["value"], 1);
                assert_eq!(again.headers["idempotent-replay"], "true");
            }
        }
    }

    #[tokio::test]
    async fn another_call_may_take_the_id_of_one_that_never_ran() {
        let store = Losing::new(1, Releases::Lost);
        let protection = Protection::new(Idempotency::in_store(store), FIXED);
        assert!(claim(&protection).await.is_err());
        let other = Identity {
            fingerprint: "other".into(),
            ..identity()
        };
        let limits = || Limits {
            tool: Duration::from_secs(1),
            deadline: None,
        };
        let claimed = protection.claim(other, Policy::Recorded, limits).await;
        assert!(matches!(claimed, Ok(Claimed::Recorded(_))));
    }

    #[tokio::test]
    async fn a_claim_is_taken_back_before_the_call_is_answered() {
        let store = Arc::new(Losing::new(1, Releases::Slow));
        let idempotency = Idempotency {
            store: Some(Arc::clone(&store) as Arc<dyn CallStore>),
            ..Idempotency::none()
        };
        let protection = Protection::new(idempotency, FIXED);
        assert!(claim(&protection).await.is_err());
        let now = FIXED.now();
        let record = record("new", now);
        assert_eq!(store.memory.claim("key", &record, now).await, Ok(None));
    }

    #[tokio::test]
    async fn taking_back_a_claim_leaves_time_for_the_answer() {
        let store = Losing::new(1, Releases::Unanswered);
        let protection = Protection::new(Idempotency::in_store(store), FIXED);
        let begun = std::time::Instant::now();
        assert!(claim(&protection).await.is_err());
        // 300 ms of the call's 400; the store itself may take 3 seconds.
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(300), "{took:?}");
        assert!(took < Duration::from_secs(2), "{took:?}");
    }

    fn record(claim: &str, free_at: SystemTime) -> Record {
        Record {
            claim: claim.to_owned(),
            fingerprint: String::new(),
            owner: String::new(),
            at_most_once: false,
            state: State::Ran,
            free_at,
            expires_at: free_at,
        }
    }

    #[test]
    fn what_is_given_up_is_limited() {
        let (claims, now) = (GivenUp::default(), FIXED.now());
        let at = |seconds| now + Duration::from_secs(seconds);
        claims.remember(&record("soon", at(1)), now);
        claims.remember(&record("later", at(3)), now);
        for i in 2..MOST {
            claims.remember(&record(&i.to_string(), at(2)), now);
        }
        claims.remember(&record("one more", at(2)), now);
        assert!(!claims.contains("soon"), "the first to be free");
        assert!(claims.contains("later") && claims.contains("one more"));
        assert_eq!(claims.lock().len(), MOST);
        claims.remember(&record("after a while", at(4)), at(2));
        assert_eq!(claims.lock().len(), 2, "the others are free");
    }
}
