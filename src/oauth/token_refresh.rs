//! A refresh of a user's token at a provider, and its result.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    Provider,
    grant::{Grant, Grants},
};
use crate::Secret;

/// A token that expires sooner than this is refreshed.
pub(super) const REFRESH_MARGIN: Duration = Duration::from_mins(1);

/// A refresh of the token of a user's grant.
pub(crate) struct TokenRefresh {
    pub(crate) provider: Arc<Provider>,
    pub(crate) record_id: String,
    pub(crate) wanted: WantedGrant,
}

/// The grant whose token is refreshed.
pub(crate) enum WantedGrant {
    /// One with these scopes, if its token expires soon.
    WithScopes(Vec<String>),
    /// That of the account that the user has signed in with, even if its token is valid, so that the
    /// provider confirms the user; unless it is no longer this token.
    #[cfg_attr(
        not(feature = "sign-in"),
        expect(dead_code, reason = "nobody signs in")
    )]
    OfAccount { subject: String, access: String },
}

impl WantedGrant {
    pub(super) fn find<'a>(&self, grants: &'a Grants, now: SystemTime) -> Option<&'a Grant> {
        match self {
            Self::WithScopes(scopes) => grants.best(scopes, now),
            Self::OfAccount { subject, .. } => grants.of_account(subject),
        }
    }

    /// Returns true if the grant's token needs no refresh, perhaps because another call has done it.
    pub(super) fn is_fresh(&self, grant: &Grant, now: SystemTime) -> bool {
        match self {
            Self::WithScopes(_) => grant.left(now) > REFRESH_MARGIN,
            Self::OfAccount { access, .. } => grant.access != *access,
        }
    }

    /// Returns true if a token without a refresh token may be returned.
    pub(super) fn accepts_unrefreshed(&self, grant: &Grant, now: SystemTime) -> bool {
        matches!(self, Self::WithScopes(_)) && !grant.left(now).is_zero()
    }
}

/// A token, and the ID token that came with it.
// Without sign-in, only the access token is read.
#[cfg_attr(not(feature = "sign-in"), expect(dead_code))]
pub(crate) struct RefreshedToken {
    pub(crate) access: Secret,
    pub(crate) id_token: Option<String>,
    /// True if another call has refreshed it.
    pub(crate) is_shared: bool,
}

impl RefreshedToken {
    pub(super) fn of(access: &str) -> Self {
        Self {
            access: Secret::from(access),
            id_token: None,
            is_shared: true,
        }
    }
}
