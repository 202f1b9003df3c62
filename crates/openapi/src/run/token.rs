//! Tokens that an API issues to the server: RFC 6749, 4.4.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use lambda_tools_core::{Context, Failure, Secret};
use reqwest::{Method, Request, Url};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::{
    Api,
    encode::{percent, query},
    failure,
    response::body_of,
};
use crate::plan::{ApiTool, Credential};

/// The time before its expiry in which a token is no longer used.
const RESERVE: Duration = Duration::from_mins(1);
/// The lifetime of a token that states none.
const DEFAULT_LIFETIME: u64 = 300;

/// The tokens of this process, by the URLs that issued them.
#[derive(Default)]
pub(super) struct Tokens(Mutex<BTreeMap<String, Token>>);

struct Token {
    value: Secret,
    ends_at: Instant,
}

#[derive(Deserialize)]
struct Issued {
    access_token: String,
    expires_in: Option<u64>,
}

impl Tokens {
    /// Returns a token, which it requests if it has none.
    pub(super) async fn token(
        &self,
        credential: &Credential,
        plan: &ApiTool,
        api: &Api,
        cx: &Context,
    ) -> Result<Secret, Failure> {
        let Credential::Client {
            token_url,
            client_id,
            client_secret,
        } = credential
        else {
            return Err(Failure::new("The tool could not complete the call"));
        };
        let mut tokens = self.0.lock().await;
        if let Some(token) = tokens
            .get(token_url)
            .filter(|it| it.ends_at > Instant::now())
        {
            return Ok(token.value.clone());
        }
        let login = [
            cx.secret(client_id)?.expose(),
            cx.secret(client_secret)?.expose(),
        ];
        let request = request(token_url, login, &scopes_of(credential, api))?;
        let response = api.client.send(request, plan, api, cx).await?;
        if !response.status().is_success() {
            return Err(failure::of_response(response, plan, api, cx).await);
        }
        let issued: Issued = serde_json::from_slice(&body_of(response).await?)?;
        let lifetime = Duration::from_secs(issued.expires_in.unwrap_or(DEFAULT_LIFETIME));
        let value = Secret::from(issued.access_token);
        let ends_at = Instant::now() + lifetime.saturating_sub(RESERVE);
        tokens.insert(
            token_url.clone(),
            Token {
                value: value.clone(),
                ends_at,
            },
        );
        Ok(value)
    }

    /// Forgets a token that the API has refused. Returns true if there was one.
    pub(super) async fn forget(&self, credential: &Credential) -> bool {
        match credential {
            Credential::Client { token_url, .. } => self.0.lock().await.remove(token_url).is_some(),
            _ => false,
        }
    }
}

/// Returns the scopes that all tools together need: they share the token.
fn scopes_of(credential: &Credential, api: &Api) -> String {
    let schemes = api
        .settings
        .credentials
        .iter()
        .filter(|(_, it)| *it == credential);
    let scopes = schemes.filter_map(|(scheme, _)| api.scopes.get(scheme));
    scopes.flatten().cloned().collect::<Vec<_>>().join(" ")
}

fn request(token_url: &str, login: [&str; 2], scopes: &str) -> Result<Request, Failure> {
    let mut form = vec![("grant_type".to_owned(), "client_credentials".to_owned())];
    if !scopes.is_empty() {
        form.push(("scope".to_owned(), scopes.to_owned()));
    }
    let mut request = Request::new(Method::POST, Url::parse(token_url)?);
    let headers = request.headers_mut();
    headers.insert("content-type", "application/x-www-form-urlencoded".parse()?);
    headers.insert("accept", "application/json".parse()?);
    // RFC 6749, 2.3.1: both are encoded as in a form.
    let login = format!("{}:{}", percent(login[0]), percent(login[1]));
    let login = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, login);
    headers.insert("authorization", format!("Basic {login}").parse()?);
    *request.body_mut() = Some(query(&form).into());
    Ok(request)
}
