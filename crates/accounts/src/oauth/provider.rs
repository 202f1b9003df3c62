//! OAuth 2.0 providers: Google, GitHub and others, and the requests for tokens to them.

use std::{collections::HashMap, fmt, sync::Arc};

use futures_util::future::BoxFuture;
use http::StatusCode;
use oauth2::{AuthType, HttpRequest, HttpResponse};
use reqwest::RequestBuilder;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::scope_descriptions::{self as known, Descriptions};
use crate::http_client::{TransportError, http_client, is_safe, sent};

/// Sends a request for tokens to a provider.
type Transport = Arc<
    dyn Fn(HttpRequest) -> BoxFuture<'static, Result<HttpResponse, TransportError>> + Send + Sync,
>;

/// A provider of OAuth 2.0 tokens, and this server's registration there.
///
/// The redirect URI to register is the server's public URL followed by
/// `/authorization/{id}/callback`.
#[derive(Clone)]
pub struct Provider {
    pub(super) id: String,
    pub(crate) client_id: String,
    /// The id of the client secret.
    pub(crate) secret: String,
    /// The issuer for `OpenID` discovery, unless the URLs are configured.
    pub(super) discovery: Option<String>,
    /// The URLs, once they are known.
    pub(super) urls: OnceCell<EndpointUrls>,
    pub(super) auth: AuthType,
    pub(super) transport: Transport,
    /// The scopes requested in addition to the tool's.
    pub(crate) scopes: Vec<String>,
    /// The additional parameters of the authorization URL, with unique names.
    pub(super) parameters: Vec<(String, String)>,
    /// The name that users see, if it is not the id.
    title: Option<String>,
    /// The descriptions of scopes that come with the library.
    known: &'static [Descriptions],
    /// The owner's, which replace those.
    descriptions: HashMap<String, String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct EndpointUrls {
    pub(super) authorize: String,
    pub(super) token: String,
    /// Where the provider says who the holder of a token is: OpenID Connect Core 1.0, 5.3.
    pub(crate) userinfo: Option<String>,
    /// RFC 9207: the expected issuer of the authorization response.
    pub(super) issuer: Option<String>,
    /// True if every authorization response names its issuer.
    pub(super) always_sends_issuer: bool,
}

impl EndpointUrls {
    /// Returns true if an authorization response, which may name its issuer, comes from this
    /// provider: RFC 9207. It may come from another one (mix-up attack).
    pub(crate) fn is_from_issuer(&self, named: Option<&str>) -> bool {
        match (&self.issuer, named) {
            (Some(expected), Some(issuer)) => expected == issuer,
            (Some(_), None) => !self.always_sends_issuer,
            (None, _) => true,
        }
    }
}

impl Provider {
    /// Creates a provider with these URLs. Tools require it by its id, such as `google`;
    /// `client_secret_id` is the id of a secret, never the secret itself.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        client_id: impl Into<String>,
        client_secret_id: impl Into<String>,
        authorize_url: impl Into<String>,
        token_url: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            client_id: client_id.into(),
            secret: client_secret_id.into(),
            discovery: None,
            urls: OnceCell::new(),
            auth: AuthType::BasicAuth,
            transport: Arc::new(|request| Box::pin(send(request))),
            scopes: Vec::new(),
            parameters: Vec::new(),
            title: None,
            known: &[],
            descriptions: HashMap::new(),
        }
        .endpoints(authorize_url.into(), token_url.into())
        // Without this, providers that remember consent do not ask the user again.
        .parameter("prompt", "consent")
    }

    /// Creates a provider whose URLs are discovered from this issuer: `OpenID` Connect Discovery
    /// 1.0.
    #[must_use]
    pub fn openid(
        id: impl Into<String>,
        client_id: impl Into<String>,
        client_secret_id: impl Into<String>,
        issuer: impl Into<String>,
    ) -> Self {
        // The issuer's URLs take the place of the empty ones.
        Self::new(id, client_id, client_secret_id, "", "")
            .issuer(issuer)
            .known(&[known::OPENID])
    }

    /// Creates the provider Google, with the id `google`.
    #[must_use]
    pub fn google(client_id: impl Into<String>, client_secret_id: impl Into<String>) -> Self {
        let authorize = "https://accounts.google.com/o/oauth2/v2/auth";
        let token = "https://oauth2.googleapis.com/token";
        Self::new("google", client_id, client_secret_id, authorize, token)
            // Google issues a refresh token only with this and the prompt for consent.
            .parameter("access_type", "offline")
            .title("Google")
            .known(&[known::OPENID, known::GOOGLE])
    }

    /// Creates the provider GitHub, with the id `github`.
    #[must_use]
    pub fn github(client_id: impl Into<String>, client_secret_id: impl Into<String>) -> Self {
        let authorize = "https://github.com/login/oauth/authorize";
        let token = "https://github.com/login/oauth/access_token";
        Self::new("github", client_id, client_secret_id, authorize, token)
            // Makes sure that the user has to act before each new grant.
            .parameter("prompt", "select_account")
            .secret_in_body()
            .title("GitHub")
            .known(&[known::GITHUB])
    }

    /// Creates the provider Microsoft, with the id `microsoft`, for work, school and personal accounts.
    #[must_use]
    pub fn microsoft(client_id: impl Into<String>, client_secret_id: impl Into<String>) -> Self {
        let authorize = "https://login.microsoftonline.com/common/oauth2/v2.0/authorize";
        let token = "https://login.microsoftonline.com/common/oauth2/v2.0/token";
        Self::new("microsoft", client_id, client_secret_id, authorize, token)
            .scope("offline_access")
            .parameter("prompt", "select_account")
            .secret_in_body()
            .title("Microsoft")
            .known(&[known::OPENID, known::MICROSOFT])
    }

    /// Creates the provider Slack, with the id `slack`, for user tokens: tools act as the user.
    #[must_use]
    pub fn slack(client_id: impl Into<String>, client_secret_id: impl Into<String>) -> Self {
        let authorize = "https://slack.com/oauth/v2_user/authorize";
        let token = "https://slack.com/api/oauth.v2.user.access";
        Self::new("slack", client_id, client_secret_id, authorize, token)
            .title("Slack")
            .known(&[known::SLACK])
    }

    fn known(self, known: &'static [Descriptions]) -> Self {
        Self { known, ..self }
    }

    /// Sets the name that users see on the pages on which they allow access, such as `Acme Mail`.
    /// By default it is the id; the built-in providers have their names.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Describes a scope in plain words, for users: `describe_scope("mail.read", "Read your mail")`.
    /// On the page, the description completes a sentence about your server, such as `Weather will
    /// be able to`. Without a description, users see only the scope itself.
    ///
    /// The most frequent scopes of the built-in providers, and those of `OpenID` Connect with
    /// [`Provider::openid`], have descriptions, which this replaces; an empty description removes
    /// one.
    #[must_use]
    pub fn describe_scope(
        mut self,
        scope: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        self.descriptions.insert(scope.into(), description.into());
        self
    }

    /// Returns the name that users see.
    pub(crate) fn shown_title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.id)
    }

    /// Returns the description of a scope, if it has one.
    pub(super) fn description_of(&self, scope: &str) -> Option<&str> {
        let own = self.descriptions.get(scope).map(String::as_str);
        own.or_else(|| known::find(self.known, scope))
            .filter(|it| !it.is_empty())
    }

    /// Returns the URI that the provider redirects browsers to.
    pub(super) fn redirect_uri(&self, base: &str) -> String {
        format!("{base}/authorization/{}/callback", self.id)
    }

    /// Uses these URLs.
    pub(crate) fn endpoints(self, authorize: String, token: String) -> Self {
        let urls = EndpointUrls {
            authorize,
            token,
            ..EndpointUrls::default()
        };
        Self {
            urls: OnceCell::from(urls),
            ..self
        }
    }

    /// Discovers the URLs from another issuer, such as your own server in place of the provider.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.discovery = Some(issuer.into());
        self.urls = OnceCell::new();
        self
    }

    /// Requests an additional scope that no tool requires, such as `offline_access` for refresh
    /// tokens.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Sets a parameter of the authorization URL, replacing an earlier one with the same name; an
    /// empty value removes it.
    ///
    /// `prompt` is `consent` by default, and `select_account` for GitHub and Microsoft: a provider
    /// that already has the user's consent would otherwise redirect them back without asking.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.parameters.retain(|(it, _)| *it != name);
        if !value.is_empty() {
            self.parameters.push((name, value));
        }
        self
    }

    /// Sends the client secret in the body instead of a header, for providers that require it
    /// (`client_secret_post`).
    #[must_use]
    pub fn secret_in_body(mut self) -> Self {
        self.auth = AuthType::RequestBody;
        self
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the error in the provider's configuration, if any.
    pub(super) fn config_error(&self) -> Option<String> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let is_id = !self.id.is_empty() && self.id.bytes().all(is_allowed);
        // The challenges' routes are `/authorization/challenges/…`.
        if !is_id || self.id == "challenges" {
            let text =
                "its id may contain only letters, digits, '_' and '-', and cannot be 'challenges'";
            return Some(format!("the provider '{}': {text}", self.id));
        }
        // Discovered URLs are checked when they are discovered.
        let urls = self.urls.get().into_iter();
        let urls = urls.flat_map(|urls| [&urls.authorize, &urls.token]);
        let unsafe_url = self
            .discovery
            .iter()
            .chain(urls)
            .find(|url| !is_safe(url))?;
        let text = format!("'{unsafe_url}' must be an https:// URL");
        Some(format!("the provider '{}': {text}", self.id))
    }
}

/// Sets what sends a provider's requests for tokens, in place of the HTTP client that all share.
pub fn with_transport<F>(
    provider: Provider,
    send: impl Fn(HttpRequest) -> F + Send + Sync + 'static,
) -> Provider
where
    F: Future<Output = Result<HttpResponse, TransportError>> + Send + 'static,
{
    Provider {
        transport: Arc::new(move |request| Box::pin(send(request))),
        ..provider
    }
}

pub(super) const NOT_AVAILABLE: TransportError = TransportError("is not available at the moment");

/// Returns true for the status of a provider that may answer later.
pub(super) fn is_overloaded(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

async fn send(request: HttpRequest) -> Result<HttpResponse, TransportError> {
    let request = RequestBuilder::from_parts(http_client()?, request.try_into()?);
    let mut response = sent(request).await?;
    if is_overloaded(response.status()) {
        return Err(NOT_AVAILABLE);
    }
    // RFC 6749, 5.2; GitHub and Slack send errors with status 200.
    let is_error = |body: Value| body["error"].is_string();
    let has_error = serde_json::from_slice(response.body()).is_ok_and(is_error);
    if response.status().is_success() && has_error {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("id", &self.id)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_prompt_the_user_again_by_default() {
        let new = || Provider::new("p", "c", "S", "https://p.example/a", "https://p.example/t");
        let openid = || Provider::openid("p", "c", "S", "https://p.example");
        let google = || Provider::google("c", "S");
        for (provider, expected) in [
            (new(), Some("consent")),
            (openid(), Some("consent")),
            (google(), Some("consent")),
            (google().issuer("https://p.example"), Some("consent")),
            (google().parameter("prompt", ""), None),
            (Provider::slack("c", "S"), Some("consent")),
            (Provider::github("c", "S"), Some("select_account")),
            (Provider::microsoft("c", "S"), Some("select_account")),
            (new().parameter("prompt", "login"), Some("login")),
        ] {
            let prompts = provider.parameters.iter().filter(|it| it.0 == "prompt");
            let prompts: Vec<_> = prompts.map(|(_, value)| &**value).collect();
            assert_eq!(prompts, expected.as_slice(), "{provider:?}");
        }
    }

    #[test]
    fn the_title_is_the_id_unless_it_is_set() {
        let mail = Provider::openid("mail", "c", "S", "https://p.example");
        let github = Provider::github("c", "S");
        for (provider, expected) in [
            (mail.clone(), "mail"),
            (mail.title("Acme Mail"), "Acme Mail"),
            (github.clone(), "GitHub"),
            (github.title("Acme"), "Acme"),
        ] {
            assert_eq!(provider.shown_title(), expected);
        }
    }
}
