//! A call's request for a user's token.

use std::time::Duration;

use crate::AuthorizationRequirement;

/// A request for the token of one provider.
#[derive(Clone, Copy)]
pub(crate) struct GrantRequest<'a> {
    /// The namespace of the caller: users of two callers are two people, whatever their ids. Empty
    /// for callers who are not told apart.
    pub(crate) caller: &'a str,
    pub(crate) user: &'a str,
    pub(crate) need: &'a AuthorizationRequirement,
    /// Where the server is, as the event says.
    pub(crate) base: Option<&'a str>,
    pub(crate) left: Duration,
}
