//! Verification of JWTs, for the fuzz targets.

use std::{sync::Arc, time::SystemTime};

use super::jwt::{JwtVerifier, SigningKey};
use crate::Secret;

pub(crate) use super::oidc::fuzzing::IssuerKeys;

/// The subject and the scopes of a JWT that is signed with `secret`.
pub(crate) fn holder_of(
    token: &[u8],
    secret: &Secret,
    audiences: &[String],
    now: SystemTime,
) -> Result<(Option<String>, Vec<String>), &'static str> {
    let verifier = JwtVerifier {
        audiences: audiences.to_vec(),
        ..JwtVerifier::new(Vec::new())
    };
    let name = Arc::from("KEY");
    let key = SigningKey {
        name: &name,
        id: &name,
        value: secret.clone(),
    };
    match verifier.verify(token, vec![key], now) {
        Ok(holder) => Ok((holder.subject, holder.scopes)),
        Err(error) => Err(error.reason),
    }
}
