//! Answers to browsers, and the parameters that providers send back through them.

/// The answer to a browser.
pub(crate) enum BrowserResponse {
    /// Whether they want it, with a cookie.
    Consent {
        page: Box<ConsentPage>,
        cookie: String,
    },
    /// On to the provider, with a cookie.
    Redirect {
        url: String,
        cookie: String,
    },
    Page(CallbackPage),
}

/// The question to a user before they are sent to the provider.
pub(crate) struct ConsentPage {
    /// The name of the caller that users are shown; empty if it is unknown.
    pub(crate) caller: String,
    pub(crate) user: String,
    pub(crate) provider: String,
    pub(crate) scopes: Vec<String>,
    /// The value that the form sends back.
    pub(crate) form: String,
    /// Whether browsers reach this server over TLS.
    pub(crate) is_https: bool,
}

/// What a page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallbackPage {
    Completed,
    NotAllowed,
    TooLittle,
    Expired,
    OtherBrowser,
    InUse,
    Failed,
    Unavailable,
}

/// What the provider sends back, read from a query.
#[derive(Default)]
pub(crate) struct CallbackQuery {
    pub(crate) state: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) issuer: Option<String>,
}
