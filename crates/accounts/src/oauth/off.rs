//! In place of users' grants, without the Cargo feature `oauth`: there are no providers.
#![expect(
    clippy::needless_pass_by_value,
    clippy::unused_async,
    missing_docs,
    reason = "the same functions as with the feature, which nobody can call"
)]

mod grant_request;

use std::{iter::Empty, sync::Arc};

use crate::{
    AuthorizationRequirement, PublicUrl, Secret, StoreError, clock::Clock, secrets::SecretCache,
};
pub use grant_request::{Challenge, GrantRequest};

/// Uninhabited: there are no settings.
pub enum OAuth {}

impl OAuth {
    pub fn secrets(&self) -> Empty<&str> {
        match *self {}
    }
}

/// Uninhabited: there are no grants.
pub enum Broker {}

impl Broker {
    pub fn new(
        settings: OAuth,
        _: &Arc<SecretCache>,
        _: Clock,
        _: PublicUrl,
        _: Vec<(String, String)>,
    ) -> Arc<Self> {
        match settings {}
    }

    pub async fn warm_up(&self) {
        match *self {}
    }

    pub async fn provides(&self, _: &AuthorizationRequirement) -> Result<bool, StoreError> {
        match *self {}
    }

    pub async fn token(&self, _: GrantRequest<'_>) -> Result<Option<Secret>, StoreError> {
        match *self {}
    }

    pub async fn challenge(&self, _: GrantRequest<'_>) -> Result<Challenge, StoreError> {
        match *self {}
    }

    pub async fn delete_rejected_grant(
        &self,
        _: GrantRequest<'_>,
        _: &Secret,
    ) -> Result<bool, StoreError> {
        match *self {}
    }
}
