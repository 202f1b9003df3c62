//! In place of users' grants, without the Cargo feature `oauth`: there are no providers.
#![expect(
    clippy::needless_pass_by_value,
    clippy::unused_async,
    reason = "the same signatures as with the feature"
)]

#[expect(dead_code, reason = "nothing answers it")]
mod grant_request;

use std::{iter::Empty, sync::Arc};

use crate::{
    AuthorizationRequirement, Secret, StoreError, clock::Clock, hosts::PublicUrl,
    secrets::SecretCache,
};
pub(crate) use grant_request::{Challenge, GrantRequest};

/// Uninhabited: there are no settings.
pub(crate) enum OAuth {}

impl OAuth {
    pub(crate) fn secrets(&self) -> Empty<&str> {
        match *self {}
    }

    pub(crate) fn provider_ids(&self) -> Empty<&str> {
        match *self {}
    }
}

/// Uninhabited: there are no grants.
pub(crate) enum Broker {}

impl Broker {
    pub(crate) fn new(
        settings: OAuth,
        _: &Arc<SecretCache>,
        _: Clock,
        _: PublicUrl,
        _: Vec<(String, String)>,
    ) -> Arc<Self> {
        match settings {}
    }

    pub(crate) async fn warm_up(&self) {
        match *self {}
    }

    pub(crate) async fn provides(&self, _: &AuthorizationRequirement) -> Result<bool, StoreError> {
        match *self {}
    }

    pub(crate) async fn token(&self, _: GrantRequest<'_>) -> Result<Option<Secret>, StoreError> {
        match *self {}
    }

    pub(crate) async fn challenge(&self, _: GrantRequest<'_>) -> Result<Challenge, StoreError> {
        match *self {}
    }

    pub(crate) async fn delete_rejected_grant(
        &self,
        _: GrantRequest<'_>,
        _: &Secret,
    ) -> Result<bool, StoreError> {
        match *self {}
    }
}
