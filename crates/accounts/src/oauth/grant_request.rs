//! A call's request for a user's token, and the challenge that a user answers first.

use std::time::Duration;

use serde::Serialize;

use crate::AuthorizationRequirement;

/// A request for the token of one provider.
#[derive(Clone, Copy)]
pub struct GrantRequest<'a> {
    /// The caller's namespace: users of two callers are different users, even if their ids are
    /// equal. Empty for anonymous callers.
    pub caller: &'a str,
    pub user: &'a str,
    pub need: &'a AuthorizationRequirement,
    /// The server's base URL, from the event.
    pub base: Option<&'a str>,
    pub left: Duration,
}

/// A challenge to the user, with the URL to authorize at: OXP 1.0, Authorization Challenges.
#[derive(Clone, Debug, Serialize)]
pub struct Challenge {
    pub id: String,
    pub url: String,
    pub(crate) check_url: String,
    /// The provider whose token is missing; not a part of the protocol.
    #[serde(skip)]
    pub provider: String,
}
