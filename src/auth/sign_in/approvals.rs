//! The clients that users have agreed to in this browser, in a sealed cookie: a user agrees once.
//!
//! Agreements are kept only for redirect URIs over TLS: on the user's machine, any program could
//! pretend to be another one (RFC 8252, 8.6). An agreement counts only for the user who made it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::request::AuthorizationRequest;
use crate::{
    oauth::{Browser, EncryptionKeys},
    store::hash_of_texts,
};

/// The name of the cookie, and the purpose for which it is sealed.
const APPROVALS: &str = "approvals";
/// The number of agreements in one browser; the oldest one is dropped first.
const MOST: usize = 12;
const LIFE: Duration = Duration::from_hours(90 * 24);

#[derive(Default, Deserialize, Serialize)]
pub(super) struct Approvals(Vec<(String, String)>);

impl Approvals {
    /// Reads the agreements in a browser's cookie.
    pub(super) fn read(keys: &EncryptionKeys, browser: Browser<'_>) -> Self {
        let sealed = browser.cookie_value(APPROVALS);
        let text = sealed.and_then(|sealed| keys.open_text(APPROVALS, sealed));
        let read = text.and_then(|text| serde_json::from_slice(&text).ok());
        read.unwrap_or_default()
    }

    /// Returns the user who has agreed to a request like this one.
    pub(super) fn user_for(&self, request: &AuthorizationRequest) -> Option<&str> {
        let client = client_in(request)?;
        let mut all = self.0.iter();
        let (_, user) = all.find(|(approved, _)| *approved == client)?;
        Some(user)
    }

    /// Replaces the agreement to a request like this one, and returns all of them, sealed. `None` if
    /// agreements to it are not kept.
    pub(super) fn with(
        mut self,
        request: &AuthorizationRequest,
        user: Option<String>,
        keys: &EncryptionKeys,
    ) -> Option<String> {
        let client = client_in(request)?;
        self.0.retain(|(approved, _)| *approved != client);
        self.0.extend(user.map(|user| (client, user)));
        let excess = self.0.len().saturating_sub(MOST);
        self.0.drain(..excess);
        let text = serde_json::to_vec(&self).expect("texts");
        Some(keys.seal_text(APPROVALS, &text))
    }
}

/// Returns the cookie with sealed agreements.
pub(super) fn approvals_cookie(browser: Browser<'_>, sealed: &str) -> String {
    browser.cookie(APPROVALS, sealed, LIFE)
}

/// Returns the name of a user in agreements.
pub(super) fn user_of(subject: &str) -> String {
    hash_of_texts(["user", subject])
}

fn client_in(request: &AuthorizationRequest) -> Option<String> {
    let (client, uri) = (&request.client_hash, &request.redirect_uri);
    let scopes = request.scopes.iter();
    let texts = [client, uri, &request.resource].into_iter().chain(scopes);
    uri.starts_with("https://").then(|| hash_of_texts(texts))
}
