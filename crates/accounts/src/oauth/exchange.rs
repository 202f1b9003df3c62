//! Requests to providers: discovery, and the exchange of codes and refresh tokens for tokens.

use std::time::Duration;

use futures_util::future::BoxFuture;
use oauth2::{
    AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet, EndpointSet,
    ExtraTokenFields, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RefreshToken,
    RequestTokenError, Scope, StandardRevocableToken, StandardTokenResponse, TokenResponse,
    TokenUrl,
    basic::{
        BasicClient, BasicErrorResponse, BasicErrorResponseType, BasicRevocationErrorResponse,
        BasicTokenIntrospectionResponse, BasicTokenType,
    },
};
use serde::{Deserialize, Serialize};

use super::provider::{EndpointUrls, NOT_AVAILABLE, Provider, is_overloaded};
use crate::{
    Secret, StoreError,
    http_client::{self, DiscoveryError, TransportError, is_safe},
};

/// The tokens in a provider's response.
pub(crate) struct ProviderTokens {
    pub(crate) access: String,
    pub(crate) refresh: Option<String>,
    /// The user's identity: OpenID Connect Core 1.0, 2.
    pub(crate) id_token: Option<String>,
    pub(crate) expires_in: Option<Duration>,
    /// The granted scopes, if the response lists them.
    pub(crate) scopes: Option<Vec<String>>,
}

/// The reason why a provider issued no token.
#[derive(Debug)]
pub(crate) enum ProviderError {
    /// The code or refresh token is invalid or has expired: RFC 6749, 5.2, `invalid_grant`.
    InvalidGrant,
    /// The provider cannot be reached, or is overloaded.
    Unavailable(&'static str),
    /// The setup is wrong. The text is an error code of RFC 6749, 5.2, or the reason why a response
    /// is unusable.
    Misconfigured(String),
}

impl ProviderError {
    pub(crate) fn into_store_error(self, provider: &str) -> StoreError {
        match self {
            Self::Unavailable(why) => StoreError::unavailable(format!("'{provider}' {why}")),
            Self::InvalidGrant => StoreError::denied(format!("'{provider}' says invalid_grant")),
            Self::Misconfigured(why) => StoreError::denied(format!("'{provider}' says: {why}")),
        }
    }
}

#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Provider {
    /// Returns the provider's URLs, discovered by the first request that needs them.
    pub(crate) async fn urls(&self) -> Result<&EndpointUrls, ProviderError> {
        // Without an issuer, the URLs are configured.
        let issuer = self.discovery.as_deref().unwrap_or_default();
        self.urls.get_or_try_init(|| discover(issuer)).await
    }

    /// Returns the URL of the provider's consent page for the user.
    pub(super) async fn authorize_url(
        &self,
        base: &str,
        scopes: &[String],
        state: String,
        verifier: String,
        nonce: Option<&str>,
    ) -> Result<String, ProviderError> {
        let authorize = AuthUrl::new(self.urls().await?.authorize.clone());
        let redirect =
            RedirectUrl::new(self.redirect_uri(base)).map_err(|it| misconfigured(&it))?;
        let client = BasicClient::new(ClientId::new(self.client_id.clone()))
            .set_auth_uri(authorize.map_err(|it| misconfigured(&it))?)
            .set_redirect_uri(redirect);
        let verifier = PkceCodeVerifier::new(verifier);
        let mut request = client
            .authorize_url(move || CsrfToken::new(state))
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        if let Some(nonce) = nonce {
            request = request.add_extra_param("nonce", nonce);
        }
        for (name, value) in &self.parameters {
            request = request.add_extra_param(name, value);
        }
        Ok(request.url().0.to_string())
    }

    /// Exchanges a code for tokens.
    pub(super) async fn exchange(
        &self,
        secret: &Secret,
        base: &str,
        code: String,
        verifier: String,
    ) -> Result<ProviderTokens, ProviderError> {
        let redirect =
            RedirectUrl::new(self.redirect_uri(base)).map_err(|it| misconfigured(&it))?;
        let client = self.token_client(secret).await?.set_redirect_uri(redirect);
        let request = client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(verifier));
        // `oauth2` takes a function, which an `Arc` is not.
        let transport = &*self.transport;
        let sent: BoxFuture<'_, _> = Box::pin(request.request_async(&transport));
        sent.await.map(|it| tokens_in(&it)).map_err(provider_error)
    }

    /// Exchanges a refresh token for tokens.
    pub(super) async fn refresh(
        &self,
        secret: &Secret,
        token: &str,
    ) -> Result<ProviderTokens, ProviderError> {
        let client = self.token_client(secret).await?;
        let token = RefreshToken::new(token.to_owned());
        let request = client.exchange_refresh_token(&token);
        let transport = &*self.transport;
        let sent: BoxFuture<'_, _> = Box::pin(request.request_async(&transport));
        sent.await.map(|it| tokens_in(&it)).map_err(provider_error)
    }

    async fn token_client(
        &self,
        secret: &Secret,
    ) -> Result<TokenClient<EndpointSet>, ProviderError> {
        let url = self.urls().await?.token.clone();
        let url = TokenUrl::new(url).map_err(|it| misconfigured(&it))?;
        Ok(TokenClient::new(ClientId::new(self.client_id.clone()))
            .set_client_secret(ClientSecret::new(secret.expose().trim().to_owned()))
            .set_auth_type(self.auth.clone())
            .set_token_uri(url))
    }
}

/// A client for tokens, which may come with an ID token.
type TokenClient<TokenEndpoint = EndpointNotSet> = oauth2::Client<
    BasicErrorResponse,
    Tokens,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    TokenEndpoint,
>;

type Tokens = StandardTokenResponse<WithIdToken, BasicTokenType>;

#[derive(Debug, Deserialize, Serialize)]
struct WithIdToken {
    id_token: Option<String>,
}

impl ExtraTokenFields for WithIdToken {}

async fn discover(issuer: &str) -> Result<EndpointUrls, ProviderError> {
    let document = http_client::discover(issuer, |it: &DiscoveryDocument| &it.issuer).await;
    let document = document.map_err(|error| match error {
        DiscoveryError::Transport(error) => ProviderError::Unavailable(error.0),
        DiscoveryError::Status(status) if is_overloaded(status) => {
            ProviderError::Unavailable(NOT_AVAILABLE.0)
        }
        error => misconfigured(&error),
    })?;
    let urls = EndpointUrls {
        authorize: document.authorization_endpoint,
        token: document.token_endpoint,
        userinfo: document.userinfo_endpoint.filter(|url| is_safe(url)),
        always_sends_issuer: document.authorization_response_iss_parameter_supported,
        issuer: Some(document.issuer),
    };
    if !is_safe(&urls.authorize) || !is_safe(&urls.token) {
        return Err(misconfigured(&"the endpoints do not use TLS"));
    }
    Ok(urls)
}

fn misconfigured(reason: &impl std::fmt::Display) -> ProviderError {
    ProviderError::Misconfigured(reason.to_string())
}

fn tokens_in(response: &Tokens) -> ProviderTokens {
    // RFC 6749, 3.3 separates scopes with spaces; GitHub and Slack use commas.
    let split = |scopes: &Vec<Scope>| {
        let all = scopes.iter().flat_map(|scope| scope.split([' ', ',']));
        let all = all.filter(|scope| !scope.is_empty());
        all.map(str::to_owned).collect()
    };
    ProviderTokens {
        access: response.access_token().secret().clone(),
        refresh: response.refresh_token().map(|it| it.secret().clone()),
        id_token: response.extra_fields().id_token.clone(),
        expires_in: response.expires_in(),
        // GitHub's apps have permissions instead, and an empty list.
        scopes: response
            .scopes()
            .map(split)
            .filter(|it: &Vec<_>| !it.is_empty()),
    }
}

/// GitHub's, Microsoft's and Slack's error codes for a grant that has ended or that the user must
/// confirm.
const INVALID_GRANT_CODES: [&str; 6] = [
    "bad_refresh_token",
    "consent_required",
    "interaction_required",
    "invalid_refresh_token",
    "login_required",
    "token_revoked",
];

type TokenRequestError = RequestTokenError<TransportError, BasicErrorResponse>;

/// Keeps only the error code: the description may quote anything.
fn provider_error(error: TokenRequestError) -> ProviderError {
    match error {
        RequestTokenError::ServerResponse(response) => match response.error() {
            BasicErrorResponseType::InvalidGrant => ProviderError::InvalidGrant,
            BasicErrorResponseType::Extension(code)
                if INVALID_GRANT_CODES.contains(&code.as_str()) =>
            {
                ProviderError::InvalidGrant
            }
            other => ProviderError::Misconfigured(printable_code(other.as_ref())),
        },
        RequestTokenError::Request(error) => ProviderError::Unavailable(error.0),
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            misconfigured(&"the response is not a token")
        }
    }
}

fn printable_code(text: &str) -> String {
    let is_allowed = |it: &char| it.is_ascii_alphanumeric() || "_-".contains(*it);
    text.chars().filter(is_allowed).take(40).collect()
}
