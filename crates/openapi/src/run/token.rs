//! Tokens that an API issues to the server: RFC 6749, 4.4.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex as SyncMutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_tools_core::{Context, Failure, Secret, secret::stored};
use reqwest::{Method, Request, Url};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::{
    client::ApiClient,
    encode::{percent, query},
    failure,
    response::body_of,
};
use crate::plan::ApiTool;

/// The time before its expiry in which a token is no longer used.
const RESERVE: Duration = Duration::from_mins(1);
/// The lifetime of a token that states none, and the maximum one, in seconds.
const DEFAULT_LIFETIME: u64 = 300;
const LONGEST_LIFETIME: u64 = 24 * 60 * 60;
/// The maximum number of tokens: callers may bring clients of their own.
const MOST_TOKENS: usize = 100;

/// The tokens of this process, by the hashes of what they were requested with. Each has a lock of its
/// own, so that an issuer that is slow delays no call with another token.
#[derive(Default)]
pub(super) struct Tokens(SyncMutex<HashMap<[u8; 32], Place>>);

type Place = Arc<Mutex<Option<Token>>>;

struct Token {
    value: Secret,
    ends_at: Instant,
}

#[derive(Deserialize)]
struct Issued {
    access_token: String,
    expires_in: Option<u64>,
}

/// The issuer, the client with its method of authentication, and the scopes.
pub(super) struct TokenRequest<'a> {
    url: &'a str,
    login: String,
    scopes: String,
}

impl Tokens {
    /// Returns a token, which it requests if it has none, or if the API has refused the one it has.
    pub(super) async fn token(
        &self,
        asked: &TokenRequest<'_>,
        is_refused: bool,
        plan: &ApiTool,
        client: &ApiClient,
        cx: &Context,
    ) -> Result<Secret, Failure> {
        let place = self.place_of(asked);
        let mut token = place.lock().await;
        let known = token.take_if(|it| is_refused || it.ends_at <= Instant::now());
        if let Some(known) = known {
            stored::forget(&known.value);
        }
        if let Some(token) = &*token {
            return Ok(token.value.clone());
        }
        // A token more has no effect, so the request may be repeated.
        let response = client.send(asked.request()?, true, cx).await?;
        if !response.status().is_success() {
            return Err(failure::of_response(response, plan, true, cx).await);
        }
        let issued: Issued = serde_json::from_slice(&body_of(response, true).await?)?;
        let lifetime = issued.expires_in.unwrap_or(DEFAULT_LIFETIME);
        let lifetime = Duration::from_secs(lifetime.min(LONGEST_LIFETIME));
        let value = Secret::from(issued.access_token);
        stored::remember(&value);
        *token = Some(Token {
            value: value.clone(),
            ends_at: Instant::now() + lifetime.saturating_sub(RESERVE),
        });
        Ok(value)
    }

    fn place_of(&self, asked: &TokenRequest<'_>) -> Place {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MOST_TOKENS {
            places.clear();
        }
        Arc::clone(places.entry(asked.key()).or_default())
    }
}

impl<'a> TokenRequest<'a> {
    pub(super) fn new(url: &'a str, login: [&Secret; 2], scopes: &[String]) -> Self {
        // RFC 6749, 2.3.1: both are encoded as in a form.
        let [id, secret] = login.map(|it| percent(it.expose()));
        Self {
            url,
            login: format!("Basic {}", STANDARD.encode(format!("{id}:{secret}"))),
            scopes: scopes.join(" "),
        }
    }

    /// No part but the last has a line break.
    fn key(&self) -> [u8; 32] {
        let whole = [self.url, &self.login, &self.scopes].join("\n");
        Sha256::digest(whole).into()
    }

    fn request(&self) -> Result<Request, Failure> {
        let mut form = vec![("grant_type".to_owned(), "client_credentials".to_owned())];
        if !self.scopes.is_empty() {
            form.push(("scope".to_owned(), self.scopes.clone()));
        }
        let mut request = Request::new(Method::POST, Url::parse(self.url)?);
        let headers = request.headers_mut();
        headers.insert("content-type", "application/x-www-form-urlencoded".parse()?);
        headers.insert("accept", "application/json".parse()?);
        headers.insert("authorization", self.login.parse()?);
        *request.body_mut() = Some(query(&form).into());
        Ok(request)
    }
}
