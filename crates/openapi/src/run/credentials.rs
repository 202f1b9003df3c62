//! The credentials of a request. They go to the API alone, in the place that the document names.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex as SyncMutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue};
use lambda_tools_core::{Context, Failure, Secret, secret::stored};
use reqwest::{Method, Request, Url};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::{Api, encode::percent, failure, request::add_cookie, response::body_of};
use crate::plan::{ApiTool, Credential};

/// The time before its expiry in which a token is no longer used.
const RESERVE: Duration = Duration::from_mins(1);
/// The lifetime of a token that states none, and the maximum one, in seconds.
const DEFAULT_LIFETIME: u64 = 300;
const LONGEST_LIFETIME: u64 = 24 * 60 * 60;
/// The maximum number of tokens: callers may bring clients of their own.
const MOST_TOKENS: usize = 100;

/// The tokens of this process, by the hashes of what they were requested with. Each has a lock of its
/// own, so that an issuer that is slow delays no call with another token.
pub(super) type Tokens = SyncMutex<HashMap<[u8; 32], Arc<Mutex<Option<Token>>>>>;

/// A token that an API has issued to the server.
pub(super) struct Token {
    value: Secret,
    ends_at: Instant,
}

#[derive(Deserialize)]
struct Issued {
    access_token: String,
    expires_in: Option<u64>,
}

impl Api {
    /// Returns a request with the credentials of a call. After the API has refused the last ones
    /// (`is_refused`), also returns whether others are among them: a secret may have been changed
    /// since it was read, and a token may have been revoked. A refused token of the user is a failure
    /// that makes the client ask for a new one.
    pub(super) async fn with_credentials(
        &self,
        request: &Request,
        plan: &ApiTool,
        cx: &Context,
        is_refused: bool,
    ) -> Result<(Request, bool), Failure> {
        let mut request = request.try_clone().expect("its body is in memory");
        let mut has_others = false;
        for (scheme, scopes) in &plan.credentials {
            let Some(credential) = self.settings.credentials.get(scheme) else {
                continue;
            };
            let fresh = match (credential, &*credential.secrets()) {
                (Credential::User { provider, .. }, _) if is_refused => {
                    return Err(cx.token_rejected(provider));
                }
                (_, [secret]) if is_refused => cx.secret_rejected(secret).await,
                _ => None,
            };
            has_others |= fresh.is_some() || matches!(credential, Credential::Client { .. });
            let value = |id: &str| match fresh {
                Some(secret) => Ok(secret),
                None => cx.secret(id).cloned(),
            };
            match credential {
                Credential::Header {
                    name,
                    secret,
                    prefix,
                } => add_header(&mut request, name, prefix, &value(secret)?)?,
                Credential::Query { name, secret } => {
                    let secret = value(secret)?;
                    let pair = format!("{}={}", percent(name), percent(secret.expose()));
                    let others = request.url().query().map(|it| format!("{it}&"));
                    let query = others.unwrap_or_default() + &pair;
                    request.url_mut().set_query(Some(&query));
                }
                Credential::Cookie { name, secret } => {
                    add_cookie(&mut request, name, &cookie_value(name, &value(secret)?)?)?;
                }
                Credential::Basic { secret } => {
                    let login = STANDARD.encode(value(secret)?.expose()).into();
                    add_header(&mut request, "Authorization", "Basic ", &login)?;
                }
                Credential::User { provider, .. } => {
                    let token = cx.token(provider)?;
                    add_header(&mut request, "Authorization", "Bearer ", token)?;
                }
                Credential::Client {
                    token_url,
                    client_id,
                    client_secret,
                } => {
                    let login = [cx.secret(client_id)?, cx.secret(client_secret)?];
                    let token = self.token(token_url, login, scopes, is_refused, plan, cx);
                    add_header(&mut request, "Authorization", "Bearer ", &token.await?)?;
                }
            }
        }
        Ok((request, has_others))
    }

    /// Returns a token that the API issues to a client: RFC 6749, 4.4. Requests it if there is none,
    /// or if the API has refused the one that there is.
    async fn token(
        &self,
        url: &str,
        login: [&Secret; 2],
        scopes: &[String],
        is_refused: bool,
        plan: &ApiTool,
        cx: &Context,
    ) -> Result<Secret, Failure> {
        // RFC 6749, 2.3.1: both are encoded as in a form.
        let [id, secret] = login.map(|it| percent(it.expose()));
        let login = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
        let scopes = scopes.join(" ");
        // No part but the last has a line break.
        let key = Sha256::digest([url, &login, &scopes].join("\n")).into();
        let place = {
            let mut places = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
            if places.len() >= MOST_TOKENS {
                places.clear();
            }
            Arc::clone(places.entry(key).or_default())
        };
        let mut token = place.lock().await;
        let known = token.take_if(|it| is_refused || it.ends_at <= Instant::now());
        if let Some(known) = known {
            stored::forget(&known.value);
        }
        if let Some(token) = &*token {
            return Ok(token.value.clone());
        }
        let mut request = Request::new(Method::POST, Url::parse(url)?);
        let headers = request.headers_mut();
        headers.insert("content-type", "application/x-www-form-urlencoded".parse()?);
        headers.insert("accept", "application/json".parse()?);
        headers.insert("authorization", login.parse()?);
        let mut form = "grant_type=client_credentials".to_owned();
        if !scopes.is_empty() {
            form.extend(["&scope=", &percent(&scopes)]);
        }
        *request.body_mut() = Some(form.into());
        // A token more has no effect, so the request may be repeated.
        let response = self.execute(request, true, cx).await?;
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
}

fn add_header(
    request: &mut Request,
    name: &str,
    prefix: &str,
    secret: &Secret,
) -> Result<(), Failure> {
    let value = HeaderValue::from_str(&format!("{prefix}{}", secret.expose().trim()));
    let mut value = value.map_err(|_| unusable("header", name))?;
    value.set_sensitive(true);
    let name = HeaderName::from_bytes(name.as_bytes())?;
    request.headers_mut().insert(name, value);
    Ok(())
}

/// Returns a secret as the value of a cookie, which has no encoding: RFC 6265, 4.1.1.
fn cookie_value(name: &str, secret: &Secret) -> Result<String, Failure> {
    let text = secret.expose().trim();
    let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let is_octet = |it: u8| it.is_ascii_graphic() && !b"\",;\\".contains(&it);
    if inner.unwrap_or(text).bytes().all(is_octet) {
        return Ok(text.to_owned());
    }
    Err(unusable("cookie", name))
}

/// Returns the failure of a secret that has no place in a header or a cookie.
fn unusable(place: &str, name: &str) -> Failure {
    Failure::new("The tool could not complete the call").developer_message(format!(
        "the secret for the {place} {name} has characters that no {place} can have"
    ))
}
