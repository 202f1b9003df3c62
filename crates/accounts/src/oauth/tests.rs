//! Tests of tokens and challenges that need no provider.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::{HeaderMap, header::COOKIE};

use super::{
    Browser, BrowserResponse, ChallengePage, GrantRequest, OAuth, Parameters, Provider,
    broker::Broker,
    grant::{GRANT_LIFE, Grant, Grants, grant_record_id},
    records::{LIMITS, Versioned},
};
use crate::{
    AuthorizationRequirement, PublicUrl, Secret,
    clock::{Clock, FIXED},
    secrets::{SecretCache, Secrets},
    store::{
        Change, Over, PutOutcome, Write,
        memory::{Memory, MemoryLimits},
    },
};

const BASE: &str = "https://tools.example";

fn broker() -> Arc<Broker> {
    broker_at(LIMITS, FIXED)
}

fn broker_at(limits: MemoryLimits, clock: Clock) -> Arc<Broker> {
    let key = ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef");
    let secrets = SecretCache::new(Secrets::fixed([key]), Vec::new(), clock.clone());
    let (authorize, token) = ("https://p.example/authorize", "https://p.example/token");
    let provider = Provider::new("google", "client", "CLIENT_SECRET", authorize, token);
    let settings = OAuth::with([provider]).in_store(Memory::new(limits));
    Arc::new(Broker {
        settings,
        secrets,
        clock,
        public_url: PublicUrl::default(),
        declared: Vec::new(),
    })
}

fn requirement() -> AuthorizationRequirement {
    serde_json::from_value(serde_json::json!({"id": "google", "oauth2": {"scopes": ["mail"]}}))
        .unwrap()
}

fn request<'a>(
    caller: &'a str,
    user: &'a str,
    need: &'a AuthorizationRequirement,
) -> GrantRequest<'a> {
    GrantRequest {
        caller,
        user,
        need,
        base: Some(BASE),
        left: Duration::from_secs(10),
    }
}

/// Saves a grant with the token "token".
async fn save_grant(broker: &Broker, caller: &str, user: &str) {
    let grant = Grant {
        access: "token".into(),
        refresh: None,
        expires_at: None,
        scopes: vec!["mail".into()],
        subject: None,
    };
    let record_id = grant_record_id(caller, user, "google");
    let (grants, records) = (Grants(vec![grant]), broker.records(None).await.unwrap());
    let saved = records.save(&record_id, &grants, GRANT_LIFE, Over::Nothing);
    assert!(saved.await.unwrap());
}

#[tokio::test]
async fn a_full_memory_forgets_challenges_and_no_grants() {
    let need = requirement();
    let two = MemoryLimits {
        records: 2,
        ..LIMITS
    };
    let broker = broker_at(two, FIXED);
    save_grant(&broker, "", "alice").await;
    let mut ids = Vec::new();
    for user in ["bob", "carol"] {
        let challenge = broker.challenge(request("", user, &need)).await.unwrap();
        ids.push(challenge.id);
    }
    assert_eq!(broker.status(&ids[0]).await, Ok("failed"), "forgotten");
    assert_eq!(broker.status(&ids[1]).await, Ok("pending"));
    save_grant(&broker, "", "dave").await;
    // Nor do the sign-ins of strangers take the room of sessions.
    assert!((LIMITS.is_anyones)("sign-in#1") && !(LIMITS.is_anyones)("session#1"));
    assert!(broker.challenge(request("", "bob", &need)).await.is_err());
    for user in ["alice", "dave"] {
        let token = broker.token(request("", user, &need)).await.unwrap();
        assert!(token.is_some(), "{user}");
    }
}

#[tokio::test]
async fn each_request_extends_the_life_of_a_challenge() {
    let moved = Arc::default();
    let (broker, need) = (broker_at(LIMITS, FIXED.movable(&moved)), requirement());
    let challenge = async || broker.challenge(request("", "alice", &need)).await.unwrap();
    let first = challenge().await.id;
    let later = |minutes: u64| moved.fetch_add(minutes * 60_000, Ordering::SeqCst);
    for _ in 0..3 {
        later(9);
        assert_eq!(challenge().await.id, first);
    }
    later(9);
    assert_eq!(broker.status(&first).await, Ok("pending"));
    later(1);
    assert_eq!(broker.status(&first).await, Ok("failed"));
}

/// Calls extend the challenge, but not the time that its user has at the provider.
#[tokio::test]
async fn a_state_expires_before_its_challenge() {
    let moved = Arc::default();
    let (broker, need) = (broker_at(LIMITS, FIXED.movable(&moved)), requirement());
    let later = |minutes: u64| moved.fetch_add(minutes * 60_000, Ordering::SeqCst);
    for (minutes, expected) in [
        (3, ChallengePage::NotAllowed),
        (4, ChallengePage::OtherBrowser),
    ] {
        let challenge = async || broker.challenge(request("", "alice", &need)).await.unwrap();
        let (id, mut headers) = (challenge().await.id, HeaderMap::new());
        let page = broker.consent_page(&id, Browser::new(BASE, &headers));
        let Ok(BrowserResponse::Consent(page)) = page.await else {
            panic!("no consent page");
        };
        let (cookie, _) = page.cookie.split_once(';').unwrap();
        headers.insert(COOKIE, cookie.parse().unwrap());
        let browser = Browser::new(BASE, &headers);
        let redirect = broker.start(&id, browser, Some(&page.form)).await;
        let Ok(BrowserResponse::Redirect { url, .. }) = redirect else {
            panic!("no redirect");
        };
        let url = reqwest::Url::parse(&url).unwrap();
        let sent = Parameters::parse(url.query().unwrap().as_bytes()).unwrap();
        let query = format!("error=access_denied&state={}", sent.get("state").unwrap());
        later(6);
        challenge().await;
        later(minutes);
        assert_eq!(broker.status(&id).await, Ok("pending"));
        let query = Parameters::parse(query.as_bytes()).unwrap();
        let page = broker.callback("google", query, browser).await;
        assert_eq!(page.unwrap_or_else(|page| page), expected, "{minutes}");
    }
}

#[tokio::test]
async fn an_expired_record_counts_as_absent() {
    let moved = Arc::default();
    let records = broker_at(LIMITS, FIXED.movable(&moved)).records(None).await;
    let (records, life) = (records.unwrap(), Duration::from_secs(1));
    let increment = async || {
        let one_more = |current: Versioned<u64>| {
            let count = current.value.unwrap_or_default() + 1;
            Change::Write(count, count)
        };
        let updated = records.update("session#1", life, one_more);
        updated.await.unwrap()
    };
    assert_eq!(increment().await, 1);
    moved.store(999, Ordering::SeqCst);
    assert_eq!(increment().await, 2);
    moved.store(1999, Ordering::SeqCst);
    assert_eq!(increment().await, 1);
}

#[tokio::test]
async fn users_of_two_callers_are_two_people() {
    let (broker, need) = (broker(), requirement());
    save_grant(&broker, "key A", "alice").await;
    let token = async |caller: &str, user: &str| {
        let token = broker.token(request(caller, user, &need)).await.unwrap();
        token.map(|token| token.expose().to_owned())
    };
    assert_eq!(token("key A", "alice").await.as_deref(), Some("token"));
    let rejected = Secret::from("token");
    for (caller, user) in [("key B", "alice"), ("", "alice"), ("key A", "bob")] {
        assert_eq!(token(caller, user).await, None, "{caller} {user}");
        let forgotten = broker.delete_rejected_grant(request(caller, user, &need), &rejected);
        assert!(!forgotten.await.unwrap(), "{caller} {user}");
    }
    let forgotten = broker.delete_rejected_grant(request("key A", "alice", &need), &rejected);
    assert!(forgotten.await.unwrap());
    assert_eq!(token("key A", "alice").await, None);
}

/// Whoever can write to the store cannot give one user's grant to another.
#[tokio::test]
async fn a_record_counts_only_under_its_own_id() {
    let (broker, need) = (broker(), requirement());
    save_grant(&broker, "", "alice").await;
    let [alice, mallory] = ["alice", "mallory"].map(|it| grant_record_id("", it, "google"));
    let store = &broker.settings.store;
    let record = store.get(&alice).await.unwrap().unwrap();
    let copy = Write {
        id: &mallory,
        record: &record,
        over: Over::Nothing,
        now: broker.clock.now(),
    };
    assert_eq!(store.put(copy).await, Ok(PutOutcome::Written));
    for (user, has_token) in [("alice", true), ("mallory", false)] {
        let token = broker.token(request("", user, &need)).await.unwrap();
        assert_eq!(token.is_some(), has_token, "{user}");
    }
}

#[tokio::test]
async fn user_ids_over_the_limit_are_rejected() {
    let (broker, need) = (broker(), requirement());
    for (length, is_accepted) in [(256, true), (257, false), (1024 * 1024, false)] {
        let user = "u".repeat(length);
        let request = request("", &user, &need);
        let token = broker.token(request).await;
        assert_eq!(token.is_ok(), is_accepted, "{length}");
        if let Err(error) = token {
            assert!(!error.is_temporary() && !error.to_string().contains("uuu"));
        }
    }
}

#[tokio::test]
async fn a_token_of_another_url_is_not_provided() {
    let broker = broker();
    for (url, is_provided) in [
        (None, true),
        (Some("https://p.example/token"), true),
        (Some("https://evil.example/token"), false),
        (Some("https://p.example/token/"), false),
        (Some("http://p.example/token"), false),
        (Some(""), false),
    ] {
        let mut need = requirement();
        need.token_url = url.map(str::to_owned);
        assert_eq!(broker.provides(&need).await, Ok(is_provided), "{url:?}");
    }
    let mut unknown = requirement();
    unknown.id = "github".to_owned();
    assert_eq!(broker.provides(&unknown).await, Ok(false));
}
