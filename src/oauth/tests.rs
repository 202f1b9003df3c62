//! What calls get, without a provider.

use std::{sync::Arc, time::Duration};

use super::{
    GrantRequest, OAuth, Provider,
    broker::{Broker, grant_of},
    grant::{Grant, Grants, KEPT_FOR},
};
use crate::{
    AuthorizationRequirement, Secret,
    secrets::{SecretCache, Secrets},
};

fn broker() -> Arc<Broker> {
    let clock = crate::clock::FIXED;
    let key = ("TOOLS_OAUTH_KEY", "a-key-of-this-server-0123456789abcdef");
    let secrets = SecretCache::new(Secrets::fixed([key]), Vec::new(), clock.clone());
    let (authorize, token) = ("https://p.example/authorize", "https://p.example/token");
    let provider = Provider::new("google", "client", "CLIENT_SECRET", authorize, token);
    let settings = OAuth::with([provider]);
    Arc::new(Broker::new(settings, &secrets, clock, None, Vec::new()))
}

fn need() -> AuthorizationRequirement {
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
        base: Some("https://tools.example"),
        left: Duration::from_secs(10),
    }
}

#[tokio::test]
async fn users_of_two_callers_are_two_people() {
    let (broker, need) = (broker(), need());
    let grant = Grant {
        access: "token".into(),
        refresh: None,
        expires_at: None,
        scopes: vec!["mail".into()],
    };
    let record_id = grant_of("key A", "alice", "google");
    let keys = broker.keys(None).await.unwrap();
    let grants = Grants(vec![grant]);
    let saved = broker
        .records
        .save(&keys, &record_id, &grants, KEPT_FOR, None);
    assert!(saved.await.unwrap());
    let token = async |caller: &str, user: &str| {
        let token = broker.token(request(caller, user, &need)).await.unwrap();
        token.map(|token| token.expose().to_owned())
    };
    assert_eq!(token("key A", "alice").await.as_deref(), Some("token"));
    let it = Secret::from("token");
    for (caller, user) in [("key B", "alice"), ("", "alice"), ("key A", "bob")] {
        assert_eq!(token(caller, user).await, None, "{caller} {user}");
        let refused = broker.refused(caller, user, "google", &it);
        assert!(!refused.await.unwrap(), "{caller} {user}");
    }
    let refused = broker.refused("key A", "alice", "google", &it);
    assert!(refused.await.unwrap());
    assert_eq!(token("key A", "alice").await, None);
}

#[tokio::test]
async fn a_user_of_any_length_is_refused() {
    let (broker, need) = (broker(), need());
    for (length, is_kept) in [(256, true), (257, false), (1024 * 1024, false)] {
        let user = "u".repeat(length);
        let request = request("", &user, &need);
        assert_eq!(broker.challenge(request).await.is_ok(), is_kept, "{length}");
        let token = broker.token(request).await;
        assert_eq!(token.is_ok(), is_kept, "{length}");
        if let Err(error) = token {
            assert!(!error.is_temporary() && !error.to_string().contains("uuu"));
        }
    }
}

#[tokio::test]
async fn who_invents_users_pushes_out_nobody_elses_challenge() {
    const MOST: usize = 10_000;
    let (broker, need) = (broker(), need());
    let challenge = async |caller: &str, user: &str| {
        let challenge = broker.challenge(request(caller, user, &need)).await;
        challenge.unwrap().id
    };
    let status = async |id: &str| broker.status(id).await.unwrap();
    let partners = challenge("key PARTNER", "alice").await;
    let mut guests = Vec::new();
    for number in 0..=MOST {
        guests.push(challenge("key GUEST", &format!("invented-{number}")).await);
    }
    assert_eq!(status(&partners).await, "pending");
    assert_eq!(status(&guests[0]).await, "failed");
    assert_eq!(status(&guests[MOST]).await, "pending");
    // There is room for what the other one asks.
    let new = challenge("key PARTNER", "bob").await;
    assert_eq!(status(&new).await, "pending");
    assert_eq!(status(&partners).await, "pending");
}
