//! Sign-in for clients that are not registered anywhere: this server issues the access tokens, and
//! an identity provider says who the user is.
//!
//! The server is an authorization server for its own resource (OAuth 2.1; RFC 8414), and a client of
//! the provider. No token of the provider is passed on. All state is in the store of users' grants,
//! or sealed in what clients and browsers hand back, so every request may reach another instance.

mod authorize;
mod callback;
mod client;
mod documents;
mod identity;
mod own_keys;
mod request;
mod server;
mod session;
mod token;

use std::{sync::Arc, time::Duration};

pub use authorize::{SignInAsker, SignInPage, SignInResponse};
pub use callback::is_sign_in_state;
use client::ListedClients;
pub use documents::{OnlyGlobal, document_client};
use identity::{Addresses, IdTokens, IdentitySource, SignInRule};
pub use own_keys::JWKS_PATH;
use own_keys::OwnKeys;
pub use request::{EndpointError, OAuthError};
pub use server::AuthorizationServer;

use super::{
    AuthError, CredentialRequest,
    oidc::{ClaimRules, KeyCache, UnverifiedToken, accepted},
};
use crate::{Caller, oauth::Provider, secrets::SecretCache};

/// Sign-in at an identity provider that does not register clients: this server issues the access
/// tokens itself, to every client that follows MCP, after the user has signed in at the provider.
///
/// The user is the call's user, as with [`Oidc`](crate::Oidc). `lambda_tools`'
/// page `sign_in` shows what to set up. The store and the keys are those
/// of [`OAuth`](crate::OAuth), which exists without providers of its own, too.
///
/// ```
/// # use lambda_tools_accounts as lambda_tools;
/// use lambda_tools::SignIn;
///
/// // For `Server::auth`.
/// let github = SignIn::github("Iv1.8a61f9b3a7aba766", "GITHUB_SECRET").allow("organization:acme");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SignIn {
    /// The provider, whose tokens tools may require, too.
    pub(crate) provider: Arc<Provider>,
    source: IdentitySource,
    rules: Vec<SignInRule>,
    /// The first mistake in the rules.
    wrong_rule: Option<String>,
    clients: ListedClients,
    claims: ClaimRules,
    /// The ids of the secrets that the keys are derived from.
    pub(crate) key_ids: Vec<String>,
    own_keys: Arc<OwnKeys>,
    /// The HTTP client that fetches metadata documents, if it is not the usual one.
    document_client: Option<reqwest::Client>,
}

/// Sets the HTTP client that fetches the metadata documents of clients, such as one with other
/// certificate authorities, made with [`document_client`].
pub fn with_document_client(mut sign_in: SignIn, client: reqwest::Client) -> SignIn {
    sign_in.document_client = Some(client);
    sign_in
}

impl SignIn {
    /// Uses any `OpenID` Connect provider. Tools can require its tokens by the id `openid`.
    pub fn openid(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        client_secret_id: impl Into<String>,
    ) -> Self {
        let issuer = issuer.into();
        let url = reqwest::Url::parse(&issuer).ok();
        let host = url.as_ref().and_then(reqwest::Url::host_str);
        let host = host.unwrap_or_default().to_owned();
        let provider = Provider::openid("openid", client_id, client_secret_id, &*issuer);
        let sign_in = Self::of(provider, issuer, Addresses::Verified);
        sign_in.provider(|it| it.title(host).scope("offline_access"))
    }

    /// Uses a user pool of Cognito, whose issuer is
    /// `https://cognito-idp.REGION.amazonaws.com/POOL_ID`. Tools can require its tokens by the id
    /// `cognito`.
    pub fn cognito(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        client_secret_id: impl Into<String>,
    ) -> Self {
        let issuer = issuer.into();
        let provider = Provider::openid("cognito", client_id, client_secret_id, &*issuer);
        let sign_in = Self::of(provider, issuer, Addresses::Verified);
        sign_in.provider(|it| it.title("Cognito").parameter("prompt", ""))
    }

    /// Uses a tenant of Entra ID, whose issuer is
    /// `https://login.microsoftonline.com/TENANT/v2.0`. Tools can require its tokens by the id
    /// `entra`.
    pub fn entra(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        client_secret_id: impl Into<String>,
    ) -> Self {
        let issuer = issuer.into();
        let provider = Provider::openid("entra", client_id, client_secret_id, &*issuer);
        let sign_in = Self::of(provider, issuer, Addresses::Unverified);
        sign_in.provider(|it| {
            it.title("Microsoft")
                .secret_in_body()
                .parameter("prompt", "select_account")
                .scope("offline_access")
        })
    }

    /// Uses Google accounts. Tools can require their tokens by the id `google`.
    pub fn google(client_id: impl Into<String>, client_secret_id: impl Into<String>) -> Self {
        let google = Provider::google(client_id, client_secret_id);
        let issuer = "https://accounts.google.com".to_owned();
        Self::of(google, issuer, Addresses::OfAnyDomain)
    }

    /// Uses GitHub accounts. Tools can require their tokens by the id `github`.
    pub fn github(client_id: impl Into<String>, client_secret_id: impl Into<String>) -> Self {
        let github = Provider::github(client_id, client_secret_id).scope("read:user");
        let api = "https://api.github.com".to_owned();
        Self::with(github, IdentitySource::GitHub(api)).user_claim("id")
    }

    /// Uses the provider at this URL in place of the usual one: a GitHub Enterprise Server, such as
    /// `https://github.acme.example`, or another issuer.
    pub fn at(mut self, url: impl Into<String>) -> Self {
        let url = url.into();
        if let IdentitySource::IdToken(tokens) = &mut self.source {
            tokens.keys = Arc::new(KeyCache::new(url.clone()));
            return self.provider(|it| it.issuer(url));
        }
        let url = url.trim_end_matches('/');
        self.source = IdentitySource::GitHub(format!("{url}/api/v3"));
        let url = |path: &str| format!("{url}/login/oauth/{path}");
        self.provider(|it| it.endpoints(url("authorize"), url("access_token")))
    }

    /// Uses the ID tokens of an issuer.
    fn of(provider: Provider, issuer: String, addresses: Addresses) -> Self {
        let provider = ["openid", "profile", "email"]
            .into_iter()
            .fold(provider, Provider::scope);
        let tokens = IdTokens {
            keys: Arc::new(KeyCache::new(issuer)),
            client_id: provider.client_id.clone(),
            addresses,
        };
        Self::with(provider, IdentitySource::IdToken(tokens))
    }

    fn with(provider: Provider, source: IdentitySource) -> Self {
        super::jwt::install_cryptography();
        Self {
            provider: Arc::new(provider),
            source,
            rules: Vec::new(),
            wrong_rule: None,
            clients: ListedClients::default(),
            claims: ClaimRules::default(),
            key_ids: Vec::new(),
            own_keys: Arc::default(),
            document_client: None,
        }
    }

    /// Lets these people sign in: `organization:NAME` (GitHub), `domain:DOMAIN` (the company at
    /// Google, or the domain of an email address that the provider has verified),
    /// `address:ADDRESS`, `group:NAME`, `user:ID` as tools get it, or `anyone`. One rule that applies
    /// is enough. The server does not start without one.
    pub fn allow(mut self, rule: impl Into<String>) -> Self {
        let text = rule.into();
        let mistake = match SignInRule::parse(&text) {
            Some(rule) if rule.is_known_from(&self.source) => {
                if let SignInRule::Organization(_) = rule {
                    self = self.provider(|it| it.scope("read:org"));
                }
                self.rules.push(rule);
                return self;
            }
            Some(_) => format!(
                "the provider '{}' cannot say to whom '{text}' applies (TOOLS_SIGN_IN_ALLOW)",
                self.provider.id()
            ),
            None => format!(
                "the rule '{}' is not anyone, user:ID, address:ADDRESS, domain:DOMAIN, \
                 organization:NAME or group:NAME (TOOLS_SIGN_IN_ALLOW)",
                text.trim()
            ),
        };
        self.wrong_rule.get_or_insert(mistake);
        self
    }

    /// Accepts only listed clients: those with this host, such as `claude.ai`, in the URL of their
    /// metadata document or in their redirect URI, or with this redirect URI, whose port does not
    /// count on the user's own machine. By default every client may ask users to sign in.
    pub fn client(mut self, host_or_redirect_uri: impl Into<String>) -> Self {
        self.clients.0.push(host_or_redirect_uri.into());
        self
    }

    /// Uses this claim of the ID token, or this field of GitHub's user, as the user. By default it is
    /// `sub`, and GitHub's `id`. Its value must never pass to another person, as email addresses and
    /// GitHub's `login` may.
    pub fn user_claim(mut self, name: impl Into<String>) -> Self {
        self.claims.user_claim = name.into();
        self
    }

    /// Uses this claim of the ID token as the user's groups, in place of `groups` and
    /// `cognito:groups`.
    pub fn groups_claim(mut self, name: impl Into<String>) -> Self {
        self.claims.group_claims = vec![name.into()];
        self
    }

    /// Changes the provider, for example to request further scopes.
    pub fn provider(mut self, change: impl FnOnce(Provider) -> Provider) -> Self {
        self.provider = Arc::new(change(Arc::unwrap_or_clone(self.provider)));
        self
    }

    /// Returns the id of the provider at which users sign in.
    pub fn provider_id(&self) -> &str {
        self.provider.id()
    }

    /// Returns the error in the settings, if any.
    pub fn config_error(&self) -> Option<String> {
        if self.wrong_rule.is_some() {
            return self.wrong_rule.clone();
        }
        if self.rules.is_empty() {
            let text = "say who may sign in: organization:acme at GitHub, domain:acme.example, \
                group:staff, or anyone who has an account at the provider: anyone \
                (TOOLS_SIGN_IN_ALLOW)";
            return Some(text.to_owned());
        }
        let mistake = self.clients.mistake()?;
        Some(format!(
            "the client '{mistake}' is neither a host, such as claude.ai, nor a redirect URI \
             (TOOLS_SIGN_IN_CLIENTS)"
        ))
    }

    /// Checks a token that names this server as its issuer. `None` if it does not.
    pub(super) async fn identify(
        &self,
        token: &[u8],
        request: &CredentialRequest<'_>,
        secrets: &Arc<SecretCache>,
    ) -> Option<Result<Caller, AuthError>> {
        let token = UnverifiedToken::parse(token).ok()?;
        let issuer = request.server_url.filter(|url| token.issuer == *url)?;
        let set = (self.own_keys).set(issuer, &self.key_ids, secrets, request.left);
        let Some(set) = set.await else {
            return Some(Err(AuthError::Undecided(Duration::ZERO)));
        };
        let (rules, now) = (ClaimRules::default(), request.clock.now());
        let accepted = accepted(&token, &set, &rules, now, request.server_url);
        let caller = accepted.map(|token| Caller::AccessToken(Arc::new(token)));
        Some(caller.map_err(AuthError::invalid))
    }
}
