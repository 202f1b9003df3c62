//! An identity provider that issues the same tokens to everybody.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Router,
    routing::{get, post},
};
use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use test_support::{answer, requests::Recorder};
use tokio::sync::Mutex;

use crate::oidc::issuer::SigningKey;

/// A running provider.
pub(super) struct Provider {
    pub(super) url: String,
    pub(super) key: SigningKey,
    /// The life of new tokens, in seconds.
    pub(super) expires_in: Arc<AtomicU64>,
    /// While this is locked, no tokens are issued.
    pub(super) issuing: Arc<Mutex<()>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Provider {
    pub(super) async fn start(recorder: &Recorder) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let key = SigningKey::new("key", Algorithm::ES256);
        let metadata = json!({
            "issuer": url,
            "jwks_uri": format!("{url}/keys"),
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
        });
        let keys = json!({"keys": [key.public()]});
        let (expires_in, issuing) = (Arc::new(AtomicU64::new(3600)), Arc::default());
        let tokens = (Arc::clone(&expires_in), Arc::clone(&issuing));
        let router = Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(move || async move { json_of(&metadata) }),
            )
            .route("/keys", get(move || async move { json_of(&keys) }))
            .route("/token", post(move || issue(tokens.clone())));
        let router = recorder.layer(router);
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            key,
            expires_in,
            issuing,
            serving,
        }
    }
}

fn json_of(body: &Value) -> axum::response::Response {
    let json = [("content-type", "application/json")];
    answer(200, &json, body.to_string())
}

async fn issue(
    (expires_in, issuing): (Arc<AtomicU64>, Arc<Mutex<()>>),
) -> axum::response::Response {
    let _issuing = issuing.lock().await;
    let expires_in = expires_in.load(Ordering::SeqCst);
    let token = uuid::Uuid::new_v4().to_string();
    json_of(&json!({
        "access_token": token,
        "refresh_token": "refresh",
        "token_type": "bearer",
        "expires_in": expires_in,
    }))
}
