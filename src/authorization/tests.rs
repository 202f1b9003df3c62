//! What calls get, without a provider.

use std::{sync::Arc, time::Duration};

use super::{
    Asking, Authorization, Provider,
    desk::{Desk, grant_of},
    grant::{Grant, Grants, KEPT_FOR},
};
use crate::{
    AuthorizationRequirement, Secret,
    secrets::{SecretCache, Secrets},
};

fn desk() -> Arc<Desk> {
    let host = crate::clock::FIXED;
    let key = (
        "TOOLS_AUTHORIZATION_KEY",
        "a-key-of-this-server-0123456789abcdef",
    );
    let secrets = SecretCache::new(Secrets::fixed([key]), Vec::new(), host.clone());
    let (authorize, token) = ("https://p.example/authorize", "https://p.example/token");
    let provider = Provider::new("google", "client", "CLIENT_SECRET", authorize, token);
    let settings = Authorization::with([provider]);
    Arc::new(Desk::new(settings, &secrets, host, None, Vec::new()))
}

fn need() -> AuthorizationRequirement {
    serde_json::from_value(serde_json::json!({"id": "google", "oauth2": {"scopes": ["mail"]}}))
        .unwrap()
}

fn asking<'a>(caller: &'a str, user: &'a str, need: &'a AuthorizationRequirement) -> Asking<'a> {
    Asking {
        caller,
        user,
        need,
        base: Some("https://tools.example"),
        left: Duration::from_secs(10),
    }
}

#[tokio::test]
async fn users_of_two_callers_are_two_people() {
    let (desk, need) = (desk(), need());
    let grant = Grant {
        access: "token".into(),
        refresh: None,
        expires_at: None,
        scopes: vec!["mail".into()],
    };
    let place = grant_of("key A", "alice", "google");
    let keys = desk.keys(None).await.unwrap();
    let grants = Grants(vec![grant]);
    let saved = desk.records.save(&keys, &place, &grants, KEPT_FOR, None);
    assert!(saved.await.unwrap());
    let token = async |caller: &str, user: &str| {
        let token = desk.token(asking(caller, user, &need)).await.unwrap();
        token.map(|token| token.expose().to_owned())
    };
    assert_eq!(token("key A", "alice").await.as_deref(), Some("token"));
    let it = Secret::from("token");
    for (caller, user) in [("key B", "alice"), ("", "alice"), ("key A", "bob")] {
        assert_eq!(token(caller, user).await, None, "{caller} {user}");
        let refused = desk.refused(caller, user, "google", &it);
        assert!(!refused.await.unwrap(), "{caller} {user}");
    }
    let refused = desk.refused("key A", "alice", "google", &it);
    assert!(refused.await.unwrap());
    assert_eq!(token("key A", "alice").await, None);
}

#[tokio::test]
async fn a_user_of_any_length_is_refused() {
    let (desk, need) = (desk(), need());
    for (length, is_kept) in [(256, true), (257, false), (1024 * 1024, false)] {
        let user = "u".repeat(length);
        let asking = asking("", &user, &need);
        assert_eq!(desk.challenge(asking).await.is_ok(), is_kept, "{length}");
        let token = desk.token(asking).await;
        assert_eq!(token.is_ok(), is_kept, "{length}");
        if let Err(error) = token {
            assert!(!error.is_temporary() && !error.to_string().contains("uuu"));
        }
    }
}

#[tokio::test]
async fn who_invents_users_pushes_out_nobody_elses_challenge() {
    const MOST: usize = 10_000;
    let (desk, need) = (desk(), need());
    let challenge = async |caller: &str, user: &str| {
        let challenge = desk.challenge(asking(caller, user, &need)).await;
        challenge.unwrap().id
    };
    let status = async |id: &str| desk.status(id).await.unwrap();
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
