//! Who gives out tokens: Google, GitHub and others.

use std::fmt;

use oauth2::AuthType;
use tokio::sync::OnceCell;

/// A provider of OAuth 2.0 tokens, and this server's registration there.
///
/// The redirect URI to register is the server's public URL with
/// `/authorization/{id}/callback` behind it.
pub struct Provider {
    pub(super) id: String,
    pub(super) client_id: String,
    /// The id of the secret that is the client secret.
    pub(super) secret: String,
    pub(super) endpoints: Endpoints,
    pub(super) auth: AuthType,
    /// What every authorization asks for besides the tool's scopes.
    pub(super) scopes: Vec<String>,
    /// Each name once.
    pub(super) parameters: Vec<(String, String)>,
}

pub(super) enum Endpoints {
    Known(EndpointUrls),
    /// `OpenID` discovery below this issuer, once it was read.
    Discovered {
        issuer: String,
        urls: OnceCell<EndpointUrls>,
    },
}

#[derive(Clone, Debug)]
pub(super) struct EndpointUrls {
    pub(super) authorize: String,
    pub(super) token: String,
    /// RFC 9207: who answers has to be who was asked.
    pub(super) issuer: Option<String>,
    /// Whether its answers always say so.
    pub(super) names_itself: bool,
}

impl Provider {
    /// A provider by its URLs. The id is the one that tools require, such as `google`;
    /// `client_secret_id` is the id of a secret, never the secret itself.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        client_id: impl Into<String>,
        client_secret_id: impl Into<String>,
        authorize_url: impl Into<String>,
        token_url: impl Into<String>,
    ) -> Self {
        let urls = EndpointUrls {
            authorize: authorize_url.into(),
            token: token_url.into(),
            issuer: None,
            names_itself: false,
        };
        Self::at(id, client_id, client_secret_id, Endpoints::Known(urls))
    }

    /// A provider that says its URLs itself: `OpenID` Connect Discovery 1.0, below this issuer.
    #[must_use]
    pub fn openid(
        id: impl Into<String>,
        client_id: impl Into<String>,
        client_secret_id: impl Into<String>,
        issuer: impl Into<String>,
    ) -> Self {
        let endpoints = Endpoints::discovered(issuer.into());
        Self::at(id, client_id, client_secret_id, endpoints)
    }

    fn at(
        id: impl Into<String>,
        client_id: impl Into<String>,
        client_secret_id: impl Into<String>,
        endpoints: Endpoints,
    ) -> Self {
        Self {
            id: id.into(),
            client_id: client_id.into(),
            secret: client_secret_id.into(),
            endpoints,
            auth: AuthType::BasicAuth,
            scopes: Vec::new(),
            parameters: Vec::new(),
        }
        // Providers that remember a consent ask nobody again unless they are told to.
        .parameter("prompt", "consent")
    }

    /// `google`.
    #[must_use]
    pub fn google(client_id: impl Into<String>, client_secret_id: impl Into<String>) -> Self {
        let (authorize, token) = (
            "https://accounts.google.com/o/oauth2/v2/auth",
            "https://oauth2.googleapis.com/token",
        );
        Self::new("google", client_id, client_secret_id, authorize, token)
            // Without it, and the prompt for consent, there is no refresh token.
            .parameter("access_type", "offline")
    }

    /// `github`.
    #[must_use]
    pub fn github(client_id: impl Into<String>, client_secret_id: impl Into<String>) -> Self {
        let (authorize, token) = (
            "https://github.com/login/oauth/authorize",
            "https://github.com/login/oauth/access_token",
        );
        Self::new("github", client_id, client_secret_id, authorize, token)
            // Nothing is allowed again without the user's doing.
            .parameter("prompt", "select_account")
            .secret_in_body()
    }

    /// `microsoft`, for accounts of organizations and persons.
    #[must_use]
    pub fn microsoft(client_id: impl Into<String>, client_secret_id: impl Into<String>) -> Self {
        let (authorize, token) = (
            "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
            "https://login.microsoftonline.com/common/oauth2/v2.0/token",
        );
        Self::new("microsoft", client_id, client_secret_id, authorize, token)
            .scope("offline_access")
            .parameter("prompt", "select_account")
            .secret_in_body()
    }

    /// `slack`, for tokens with which tools act as the user.
    #[must_use]
    pub fn slack(client_id: impl Into<String>, client_secret_id: impl Into<String>) -> Self {
        let (authorize, token) = (
            "https://slack.com/oauth/v2_user/authorize",
            "https://slack.com/api/oauth.v2.user.access",
        );
        Self::new("slack", client_id, client_secret_id, authorize, token)
    }

    /// Where the provider sends browsers back to.
    pub(super) fn redirect_uri(&self, base: &str) -> String {
        format!("{base}/authorization/{}/callback", self.id)
    }

    /// Has the URLs discovered below another issuer: a server of one's own in the provider's
    /// place.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.endpoints = Endpoints::discovered(issuer.into());
        self
    }

    /// Asks for a scope that no tool names, such as `offline_access` for refresh tokens.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Sets a parameter of the URL that the user follows, in place of an earlier one with this name;
    /// with an empty value the parameter is left out.
    ///
    /// `prompt` is `consent` from the beginning, for GitHub and Microsoft `select_account`: a provider
    /// that has the user's consent already would send them back without having asked anything.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.parameters.retain(|(it, _)| *it != name);
        if !value.is_empty() {
            self.parameters.push((name, value));
        }
        self
    }

    /// Sends the client secret in the body instead of a header, for providers that want it there
    /// (`client_secret_post`).
    #[must_use]
    pub fn secret_in_body(mut self) -> Self {
        self.auth = AuthType::RequestBody;
        self
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// What is wrong with it.
    pub(crate) fn mistake(&self) -> Option<String> {
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let is_named = !self.id.is_empty() && self.id.bytes().all(is_id);
        // The routes of challenges begin with it.
        if !is_named || self.id == "challenges" {
            let text = "its id has to be letters, digits, underscores and dashes";
            return Some(format!("the provider '{}': {text}", self.id));
        }
        let urls = match &self.endpoints {
            Endpoints::Known(urls) => vec![&urls.authorize, &urls.token],
            Endpoints::Discovered { issuer, .. } => vec![issuer],
        };
        let wrong = urls.into_iter().find(|url| !is_safe(url))?;
        let text = format!("'{wrong}' has to be an https:// URL");
        Some(format!("the provider '{}': {text}", self.id))
    }
}

impl Endpoints {
    fn discovered(issuer: String) -> Self {
        let urls = OnceCell::new();
        Self::Discovered { issuer, urls }
    }
}

/// Tokens and secrets go over TLS, but on this machine.
pub(super) fn is_safe(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let is_local = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
    url.scheme() == "https" || (url.scheme() == "http" && is_local)
}

/// A URL that others can be made of by appending to it.
pub(crate) fn is_base(url: &str) -> bool {
    let bare = |url: reqwest::Url| {
        url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    };
    is_safe(url) && reqwest::Url::parse(url).is_ok_and(bare)
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

    fn prompt(provider: &Provider) -> Vec<&str> {
        let all = provider.parameters.iter();
        all.filter(|(name, _)| name == "prompt")
            .map(|(_, value)| &**value)
            .collect()
    }

    #[test]
    fn users_are_asked_again_unless_the_owner_says_otherwise() {
        let new = || Provider::new("p", "c", "S", "https://p.example/a", "https://p.example/t");
        for (provider, expected) in [
            (new(), &["consent"][..]),
            (
                Provider::openid("p", "c", "S", "https://p.example"),
                &["consent"],
            ),
            (Provider::google("c", "S"), &["consent"]),
            (Provider::slack("c", "S"), &["consent"]),
            (Provider::github("c", "S"), &["select_account"]),
            (Provider::microsoft("c", "S"), &["select_account"]),
            (new().parameter("prompt", "login"), &["login"]),
            (new().parameter("prompt", ""), &[]),
            (
                Provider::google("c", "S").issuer("https://p.example"),
                &["consent"],
            ),
        ] {
            assert_eq!(prompt(&provider), expected, "{provider:?}");
        }
        let google = Provider::google("c", "S").parameter("prompt", "");
        assert_eq!(
            google.parameters,
            [("access_type".into(), "offline".into())]
        );
    }
}
