//! Answers to browsers, and the parameters that providers send back through them.

/// The answer to a browser.
pub(crate) enum Answer {
    /// Whether they want it, with a cookie.
    Question {
        question: Box<Question>,
        cookie: String,
    },
    /// On to the provider, with a cookie.
    Redirect {
        url: String,
        cookie: String,
    },
    Page(Told),
}

/// The question to a user before they are sent to the provider.
pub(crate) struct Question {
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
pub(crate) enum Told {
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
pub(crate) struct Back {
    pub(crate) state: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) issuer: Option<String>,
}
