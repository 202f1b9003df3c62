//! Access tokens, without the Cargo feature `oidc`: there are none.

use std::future::Ready;

use crate::clock::Clock;

/// Uninhabited: there are no settings.
#[derive(Clone, Debug)]
pub enum Oidc {}

impl Oidc {
    pub(super) fn url(&self) -> &str {
        match *self {}
    }

    pub(super) fn warm_up(&self, _: &Clock) -> Ready<()> {
        match *self {}
    }
}
