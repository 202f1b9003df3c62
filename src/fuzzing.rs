//! Entry points for the fuzz targets in `fuzz/`.
//!
//! The targets check parts of this crate that no program can call. This module exists only in their
//! builds, for which cargo-fuzz sets `cfg(fuzzing)`, so that neither the public interface nor any
//! function grows.

mod call;

use std::time::SystemTime;

use crate::{AccessToken, Secret, auth::fuzzing as auth};

pub use call::{CallFormat, Calls, DecodedCall};

/// The subject and the scopes of a JWT that `secret` has signed.
///
/// # Errors
/// The reason why the token is rejected.
pub fn jwt_holder(
    token: &[u8],
    secret: &Secret,
    audiences: &[String],
    now: SystemTime,
) -> Result<(Option<String>, Vec<String>), &'static str> {
    auth::holder_of(token, secret, audiences, now)
}

/// The keys of an issuer.
pub struct IssuerKeys(auth::IssuerKeys);

impl IssuerKeys {
    /// Reads a JSON Web Key Set.
    #[must_use]
    pub fn parse(
        issuer: &str,
        document: &[u8],
        audiences: &[String],
        client_ids: &[String],
    ) -> Option<Self> {
        auth::IssuerKeys::parse(issuer, document, audiences, client_ids).map(Self)
    }

    /// The facts in an access token.
    ///
    /// # Errors
    /// The reason why the token is rejected.
    pub fn accept(
        &self,
        token: &[u8],
        now: SystemTime,
        server_url: Option<&str>,
    ) -> Result<AccessToken, &'static str> {
        self.0.accept(token, now, server_url)
    }
}
