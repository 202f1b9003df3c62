//! Sign-in, without the Cargo feature `sign-in`: there is none.

use std::{future::Ready, sync::Arc};

use crate::{
    Caller,
    auth::{AuthError, CredentialRequest},
    secrets::SecretCache,
};

/// Uninhabited: there are no settings.
#[derive(Clone, Debug)]
pub(crate) enum SignIn {}

impl SignIn {
    pub(crate) fn provider_id(&self) -> &str {
        match *self {}
    }

    pub(super) fn identify(
        &self,
        _: &[u8],
        _: &CredentialRequest<'_>,
        _: &Arc<SecretCache>,
    ) -> Ready<Option<Result<Caller, AuthError>>> {
        match *self {}
    }
}
