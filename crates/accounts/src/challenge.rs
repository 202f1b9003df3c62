//! A challenge to a user, who answers it before a call can have their token.

use serde::Serialize;

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
