//! A call's request for a user's token.

use std::time::Duration;

use crate::AuthorizationRequirement;

/// A request for the token of one provider.
#[derive(Clone, Copy)]
pub(crate) struct GrantRequest<'a> {
    /// The caller's namespace: users of two callers are different users, even if their ids are
    /// equal. Empty for anonymous callers.
    pub(crate) caller: &'a str,
    pub(crate) user: &'a str,
    pub(crate) need: &'a AuthorizationRequirement,
    /// The server's base URL, from the event.
    pub(crate) base: Option<&'a str>,
    pub(crate) left: Duration,
}
