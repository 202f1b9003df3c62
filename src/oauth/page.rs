//! Responses to browsers, and the parameters that providers send back through them.

/// A response to a browser.
pub(crate) enum BrowserResponse {
    /// The consent page, with a cookie.
    Consent {
        page: Box<ConsentPage>,
        cookie: String,
    },
    /// A redirect to the provider, with a cookie.
    Redirect {
        url: String,
        cookie: String,
    },
    Page(CallbackPage),
}

/// The page on which the user agrees before the redirect to the provider.
pub(crate) struct ConsentPage {
    /// The caller's name as shown to the user; empty if unknown.
    pub(crate) caller: String,
    pub(crate) user: String,
    /// The provider's name as shown to users.
    pub(crate) provider: String,
    pub(crate) scopes: Vec<RequestedScope>,
    /// The token that the form sends back.
    pub(crate) form: String,
    /// True if browsers reach this server over TLS.
    pub(crate) is_https: bool,
}

/// A scope that the provider will be asked for.
pub(crate) struct RequestedScope {
    pub(crate) name: String,
    /// The permission, in plain words.
    pub(crate) description: Option<String>,
}

/// The outcome that a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallbackPage {
    Completed,
    NotAllowed,
    InsufficientScopes,
    Expired,
    OtherBrowser,
    InUse,
    Failed,
    Unavailable,
}

/// The query parameters of the provider's redirect.
#[derive(Default)]
pub(crate) struct CallbackQuery {
    pub(crate) state: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) issuer: Option<String>,
}

impl CallbackQuery {
    /// Parses a query, in which no parameter may occur twice (RFC 6749, 3.1).
    pub(crate) fn parse(query: &str) -> Option<Self> {
        let mut parsed = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let field = match &*name {
                "state" => &mut parsed.state,
                "code" => &mut parsed.code,
                "error" => &mut parsed.error,
                "iss" => &mut parsed.issuer,
                _ => continue,
            };
            if field.replace(value.into_owned()).is_some() {
                return None;
            }
        }
        Some(parsed)
    }
}
