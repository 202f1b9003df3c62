//! The keys that sign this server's own access tokens (RFC 9068), derived from the secrets that
//! encrypt grants: they rotate together, and the first one signs.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::{
    Secret, StoreError,
    auth::oidc::KeySet,
    oauth::{derived_key, fingerprint, is_long_enough},
    secrets::SecretCache,
};

/// The path of the public keys.
pub const JWKS_PATH: &str = "/.well-known/jwks.json";

/// The keys as they were last derived, with the fingerprints of their secrets.
#[derive(Debug, Default)]
pub(super) struct OwnKeys(Mutex<Option<(Vec<String>, Arc<KeySet>)>>);

impl OwnKeys {
    /// Returns the public keys of this server as an issuer. `None` if no secret can be read.
    pub(super) async fn set(
        &self,
        issuer: &str,
        ids: &[String],
        secrets: &Arc<SecretCache>,
        left: Option<Duration>,
    ) -> Option<Arc<KeySet>> {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        let reads = secrets.read(&ids, left).await;
        // Only the first key must be readable: old ones may be missing.
        reads.first()?.as_ref().ok()?;
        let secrets = reads.into_iter().filter_map(|it| it.ok().flatten());
        let secrets: Vec<_> = secrets.filter(is_long_enough).collect();
        let ids: Vec<_> = secrets.iter().map(fingerprint).collect();
        let mut derived = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, set)) = &*derived
            && *known == ids
            && *set.issuer == *issuer
        {
            return Some(Arc::clone(set));
        }
        let set = KeySet::parse(issuer.into(), jwks(&secrets).to_string().as_bytes());
        let set = Arc::new(set.ok()?);
        *derived = Some((ids, Arc::clone(&set)));
        Some(set)
    }
}

/// Returns the public keys of these secrets: RFC 7517, section 5; RFC 8037.
pub(super) fn jwks(secrets: &[Secret]) -> Value {
    let jwk = |secret: &Secret| {
        let key = key_pair(secret);
        let public = BASE64_URL_SAFE_NO_PAD.encode(key.public_key());
        json!({
            "kty": "OKP",
            "crv": "Ed25519",
            "x": public,
            "kid": fingerprint(secret),
            "alg": "EdDSA",
            "use": "sig",
        })
    };
    json!({"keys": secrets.iter().map(jwk).collect::<Vec<_>>()})
}

/// Signs an access token: RFC 9068, section 2.
pub(super) fn sign(secret: &Secret, claims: &Value) -> Result<String, StoreError> {
    let header = Header {
        typ: Some("at+jwt".to_owned()),
        kid: Some(fingerprint(secret)),
        ..Header::new(Algorithm::EdDSA)
    };
    let unusable = || StoreError::denied("the key that signs access tokens cannot be used");
    let der = key_pair(secret).to_pkcs8v1().map_err(|_| unusable())?;
    let key = EncodingKey::from_ed_der(der.as_ref());
    jsonwebtoken::encode(&header, claims, &key).map_err(|_| unusable())
}

fn key_pair(secret: &Secret) -> Ed25519KeyPair {
    let seed = derived_key(secret, "access tokens");
    Ed25519KeyPair::from_seed_unchecked(seed.as_ref()).expect("a seed has 32 bytes")
}
