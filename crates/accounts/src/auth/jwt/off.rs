//! JWTs, without the Cargo feature `jwt`: there are none.

use std::sync::Arc;

use crate::auth::api_keys::SecretRotation;

pub(super) const SHORTEST_SECRET: usize = 0;

/// Uninhabited: there are no settings.
#[derive(Clone, Debug)]
pub enum Jwt {}

impl Jwt {
    pub(super) fn signers(&self) -> &[SecretRotation] {
        match *self {}
    }

    pub(super) fn names_users(&self, _: &Arc<str>) -> bool {
        match *self {}
    }
}
