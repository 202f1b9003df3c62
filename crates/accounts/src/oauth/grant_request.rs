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
    /// The user's id.
    pub user: &'a str,
    /// The provider and the scopes.
    pub need: &'a AuthorizationRequirement,
    /// The server's base URL, from the event.
    pub base: Option<&'a str>,
    /// The time that the call has left.
    pub left: Duration,
}

/// A challenge to the user, with the URL to authorize at: OXP 1.0, Authorization Challenges.
#[derive(Clone, Debug, Serialize)]
pub struct Challenge {
    /// The id, which cannot be guessed.
    pub id: String,
    /// The URL that the user follows.
    pub url: String,
    /// The URL at which clients ask for its status.
    pub check_url: String,
    /// The provider whose token is missing; not a part of the protocol.
    #[serde(skip)]
    pub provider: String,
}
