//! Responses to browsers.

/// A response to a browser. `A` is who asks for consent, `P` the page of an outcome.
pub(crate) enum BrowserResponse<A, P> {
    /// The consent page, with a cookie.
    Consent {
        page: Box<ConsentPage<A>>,
        cookie: String,
    },
    Redirect {
        url: String,
        cookies: Vec<String>,
    },
    Page(P),
}

/// The page on which the user agrees before the redirect to the provider.
pub(crate) struct ConsentPage<A> {
    pub(crate) asker: A,
    /// The provider's name as shown to users.
    pub(crate) provider: String,
    pub(crate) scopes: Vec<RequestedScope>,
    /// The value that the form sends back.
    pub(crate) form: String,
    /// True if browsers reach this server over TLS.
    pub(crate) is_https: bool,
}

/// A scope that is asked for.
pub(crate) struct RequestedScope {
    pub(crate) name: String,
    /// The permission, in plain words.
    pub(crate) description: Option<String>,
}

/// A response about a challenge.
pub(crate) type ChallengeResponse = BrowserResponse<ChallengeAsker, ChallengePage>;

/// The user of a call that needs a token, and the call's caller.
pub(crate) struct ChallengeAsker {
    /// The caller's name as shown to the user; empty if unknown.
    pub(crate) caller: String,
    pub(crate) user: String,
}

/// The outcome of a challenge that a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChallengePage {
    Completed,
    NotAllowed,
    InsufficientScopes,
    Expired,
    OtherBrowser,
    InUse,
    Failed,
    Unavailable,
}
