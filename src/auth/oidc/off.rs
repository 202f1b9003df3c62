//! Access tokens, without the Cargo feature `oidc`: there are none.

use std::future::{Ready, ready};

use crate::{
    Caller,
    auth::{AuthError, CredentialRequest, attempt::CredentialCheck},
    clock::Clock,
};

#[derive(Clone, Debug)]
pub(crate) enum Oidc {}

impl Oidc {
    pub(super) fn url(&self) -> &str {
        match *self {}
    }

    pub(super) fn warm_up(&self, _: &Clock) -> Ready<()> {
        match *self {}
    }
}

pub(super) fn identify(
    all: &[Oidc],
    _: &[u8],
    request: &CredentialRequest<'_>,
    _: &mut CredentialCheck,
) -> Ready<Option<Result<Caller, AuthError>>> {
    // Only access tokens name it.
    let _ = request.server_url;
    ready(all.first().map(|oidc| match *oidc {}))
}
