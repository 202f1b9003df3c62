//! Speaking to providers: discovery, codes and refresh tokens for tokens.

use std::{sync::LazyLock, time::Duration};

use http::header::CONTENT_TYPE;
use oauth2::{
    AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, HttpRequest, HttpResponse,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RefreshToken, RequestTokenError, Scope,
    TokenResponse, TokenUrl,
    basic::{BasicClient, BasicErrorResponseType, BasicTokenResponse},
};
use serde::Deserialize;

use super::provider::{EndpointUrls, Endpoints, Provider, is_safe};
use crate::{Secret, StoreError};

/// How long one request to a provider may take.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Token responses are short.
const LARGEST: usize = 256 * 1024;

/// What a provider gave.
pub(super) struct ProviderTokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    pub(super) lives_for: Option<Duration>,
    /// What was granted, where the provider says so.
    pub(super) scopes: Option<Vec<String>>,
}

/// Why a provider gave nothing.
#[derive(Debug)]
pub(super) enum ProviderError {
    /// The code or the refresh token is not valid, or no longer: RFC 6749, 5.2, `invalid_grant`.
    InvalidGrant,
    /// The provider cannot be reached, or has no time.
    Unavailable(&'static str),
    /// Something is set up wrong. A word of RFC 6749, 5.2, or what cannot be read.
    Wrong(String),
}

impl ProviderError {
    pub(super) fn into_error(self, provider: &str) -> StoreError {
        match self {
            Self::Unavailable(why) => StoreError::unavailable(format!("'{provider}' {why}")),
            Self::InvalidGrant => StoreError::denied(format!("'{provider}' says invalid_grant")),
            Self::Wrong(why) => StoreError::denied(format!("'{provider}' says: {why}")),
        }
    }
}

/// One client for all providers, made by the first request.
fn http() -> Option<&'static reqwest::Client> {
    static CLIENT: LazyLock<Option<reqwest::Client>> = LazyLock::new(|| {
        let client = reqwest::Client::builder()
            // A token request that is redirected would hand its secret to somebody else.
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .build();
        client.ok()
    });
    CLIENT.as_ref()
}

#[derive(Debug)]
struct TransportError(&'static str);

impl std::fmt::Display for TransportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for TransportError {}

fn why(error: &reqwest::Error) -> TransportError {
    TransportError(if error.is_timeout() {
        "did not answer in time"
    } else if error.is_connect() {
        "cannot be reached"
    } else {
        "broke off its answer"
    })
}

async fn send(request: HttpRequest) -> Result<HttpResponse, TransportError> {
    let (parts, body) = request.into_parts();
    let client = http().ok_or(TransportError(
        "cannot be asked: there is no TLS on this machine",
    ))?;
    let sent = client
        .request(parts.method, parts.uri.to_string())
        .headers(parts.headers)
        .body(body);
    let mut answer = sent.send().await.map_err(|error| why(&error))?;
    if answer.status().is_server_error() || answer.status().as_u16() == 429 {
        return Err(TransportError("is not available at the moment"));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| why(&error))? {
        if body.len() + chunk.len() > LARGEST {
            return Err(TransportError("answered with more than is ever needed"));
        }
        body.extend_from_slice(&chunk);
    }
    let mut status = answer.status();
    // GitHub and Slack answer errors with a 200.
    if status.is_success() && serde_json::from_slice::<TokenErrorBody>(&body).is_ok() {
        status = http::StatusCode::BAD_REQUEST;
    }
    let mut response = HttpResponse::new(body);
    *response.status_mut() = status;
    if let Some(kind) = answer.headers().get(CONTENT_TYPE) {
        response.headers_mut().insert(CONTENT_TYPE, kind.clone());
    }
    Ok(response)
}

/// RFC 6749, 5.2.
#[derive(Deserialize)]
struct TokenErrorBody {
    #[serde(rename = "error")]
    _error: String,
}

#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Provider {
    /// Its URLs, discovered by the first who needs them.
    pub(super) async fn urls(&self) -> Result<&EndpointUrls, ProviderError> {
        match &self.endpoints {
            Endpoints::Known(urls) => Ok(urls),
            Endpoints::Discovered { issuer, urls } => {
                urls.get_or_try_init(|| discovered(issuer)).await
            }
        }
    }

    /// The URL that the user follows.
    pub(super) fn authorize_url(
        &self,
        urls: &EndpointUrls,
        redirect: &str,
        scopes: &[String],
        state: String,
        verifier: String,
    ) -> Result<String, ProviderError> {
        let authorize = AuthUrl::new(urls.authorize.clone()).map_err(|it| wrong(&it))?;
        let redirect = RedirectUrl::new(redirect.to_owned()).map_err(|it| wrong(&it))?;
        let client = BasicClient::new(ClientId::new(self.client_id.clone()))
            .set_auth_uri(authorize)
            .set_redirect_uri(redirect);
        let verifier = PkceCodeVerifier::new(verifier);
        let mut request = client
            .authorize_url(move || CsrfToken::new(state))
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        for (name, value) in &self.parameters {
            request = request.add_extra_param(name, value);
        }
        Ok(request.url().0.to_string())
    }

    /// A code for tokens.
    pub(super) async fn exchange(
        &self,
        secret: &Secret,
        redirect: &str,
        code: String,
        verifier: String,
    ) -> Result<ProviderTokens, ProviderError> {
        let urls = self.urls().await?;
        let redirect = RedirectUrl::new(redirect.to_owned()).map_err(|it| wrong(&it))?;
        let token = TokenUrl::new(urls.token.clone()).map_err(|it| wrong(&it))?;
        let client = BasicClient::new(ClientId::new(self.client_id.clone()))
            .set_client_secret(ClientSecret::new(secret.expose().trim().to_owned()))
            .set_auth_type(self.auth.clone())
            .set_token_uri(token)
            .set_redirect_uri(redirect);
        let request = client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(verifier));
        let given = request.request_async(&send).await;
        given.map(|it| tokens_of(&it)).map_err(refusal_of)
    }

    /// A refresh token for tokens.
    pub(super) async fn refresh(
        &self,
        secret: &Secret,
        token: &str,
    ) -> Result<ProviderTokens, ProviderError> {
        let urls = self.urls().await?;
        let url = TokenUrl::new(urls.token.clone()).map_err(|it| wrong(&it))?;
        let client = BasicClient::new(ClientId::new(self.client_id.clone()))
            .set_client_secret(ClientSecret::new(secret.expose().trim().to_owned()))
            .set_auth_type(self.auth.clone())
            .set_token_uri(url);
        let token = RefreshToken::new(token.to_owned());
        let request = client.exchange_refresh_token(&token);
        let given = request.request_async(&send).await;
        given.map(|it| tokens_of(&it)).map_err(refusal_of)
    }
}

async fn discovered(issuer: &str) -> Result<EndpointUrls, ProviderError> {
    let base = issuer.trim_end_matches('/');
    let url = format!("{base}/.well-known/openid-configuration");
    let request = http::Request::get(url).body(Vec::new());
    let request = request.map_err(|error| ProviderError::Wrong(error.to_string()))?;
    let answer = send(request)
        .await
        .map_err(|it| ProviderError::Unavailable(it.0))?;
    let document: DiscoveryDocument = serde_json::from_slice(answer.body())
        .map_err(|_| ProviderError::Wrong("no OpenID configuration".into()))?;
    // OpenID Connect Discovery 1.0, 4.3.
    if document.issuer.trim_end_matches('/') != base {
        return Err(ProviderError::Wrong(
            "a configuration of another issuer".into(),
        ));
    }
    let urls = EndpointUrls {
        authorize: document.authorization_endpoint,
        token: document.token_endpoint,
        names_itself: document.authorization_response_iss_parameter_supported,
        issuer: Some(document.issuer),
    };
    if !is_safe(&urls.authorize) || !is_safe(&urls.token) {
        return Err(ProviderError::Wrong("endpoints without TLS".into()));
    }
    Ok(urls)
}

fn wrong(error: &impl std::fmt::Display) -> ProviderError {
    ProviderError::Wrong(error.to_string())
}

fn tokens_of(given: &BasicTokenResponse) -> ProviderTokens {
    // RFC 6749, 3.3 separates with spaces; GitHub and Slack with commas.
    let split = |scopes: &Vec<Scope>| {
        let all = scopes.iter().flat_map(|scope| scope.split([' ', ',']));
        let all = all.filter(|scope| !scope.is_empty());
        all.map(str::to_owned).collect()
    };
    ProviderTokens {
        access: given.access_token().secret().clone(),
        refresh: given.refresh_token().map(|it| it.secret().clone()),
        lives_for: given.expires_in(),
        scopes: given.scopes().map(split),
    }
}

/// Words of GitHub, Microsoft and Slack for a grant that has ended, or that the user has to confirm.
const IS_OVER: [&str; 6] = [
    "bad_refresh_token",
    "consent_required",
    "interaction_required",
    "invalid_refresh_token",
    "login_required",
    "token_revoked",
];

type TokenRequestError = RequestTokenError<TransportError, oauth2::basic::BasicErrorResponse>;

/// Only the error's code: its description may quote anything.
fn refusal_of(error: TokenRequestError) -> ProviderError {
    match error {
        RequestTokenError::ServerResponse(answer) => match answer.error() {
            BasicErrorResponseType::InvalidGrant => ProviderError::InvalidGrant,
            BasicErrorResponseType::Extension(word) if IS_OVER.contains(&word.as_str()) => {
                ProviderError::InvalidGrant
            }
            other => ProviderError::Wrong(word_of(other.as_ref())),
        },
        RequestTokenError::Request(unanswered) => ProviderError::Unavailable(unanswered.0),
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            ProviderError::Wrong("something that is no token".into())
        }
    }
}

fn word_of(text: &str) -> String {
    let is_word = |it: &char| it.is_ascii_alphanumeric() || "_-".contains(*it);
    text.chars().filter(is_word).take(40).collect()
}
