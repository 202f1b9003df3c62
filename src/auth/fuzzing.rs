//! Verification of JWTs, for the fuzz targets.

use std::{sync::Arc, time::SystemTime};

use super::jwt::{Jwt, SigningKey, verify};
use crate::{Caller, Secret};

pub(crate) use super::oidc::fuzzing::IssuerKeys;

/// Returns the subject and the scopes of a JWT that is signed with `secret`.
pub(crate) fn holder_of(
    token: &[u8],
    secret: &Secret,
    audiences: &[String],
    now: SystemTime,
) -> Result<(Option<String>, Vec<String>), &'static str> {
    let id: Arc<str> = Arc::from("KEY");
    let rules = Jwt::with_secret_ids([&id]);
    let key = SigningKey {
        rules: &audiences.iter().fold(rules, Jwt::audience),
        signer: &id,
        id: &id,
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
