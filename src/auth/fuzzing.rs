//! Verification of JWTs, for the fuzz targets.

use std::time::SystemTime;

use super::{
    jwt::{JwtSigner, SigningKey, verify},
    rotation::SecretRotation,
};
use crate::{Caller, Secret};

pub(crate) use super::oidc::fuzzing::IssuerKeys;

/// The subject and the scopes of a JWT that is signed with `secret`.
pub(crate) fn holder_of(
    token: &[u8],
    secret: &Secret,
    audiences: &[String],
    now: SystemTime,
) -> Result<(Option<String>, Vec<String>), &'static str> {
    let secrets = SecretRotation::parse("KEY").expect("an id");
    let signer = JwtSigner {
        audiences: audiences.to_vec(),
        ..JwtSigner::new(secrets)
    };
    let key = SigningKey {
        signer: &signer,
        id: signer.secrets.name(),
        value: secret.clone(),
    };
    match verify(token, vec![key], now) {
        Ok(Caller::Jwt {
            subject, scopes, ..
        }) => Ok((subject, scopes)),
        Ok(_) => unreachable!("a JWT identifies no other kind of caller"),
        Err(error) => Err(error.reason),
    }
}
