//! Challenges to users.

use serde::Serialize;

/// A challenge to the user, with the URL to authorize at: OXP 1.0, Authorization Challenges.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Challenge {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) check_url: String,
    /// The provider whose token is missing; not a part of the protocol.
    #[serde(skip)]
    pub(crate) provider: String,
}
