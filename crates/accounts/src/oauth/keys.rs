//! Encryption and signatures, with keys from the secret store.
//!
//! Each purpose has its own key, derived from the secret: a signature for one purpose is not valid
//! for another.

use std::sync::Arc;

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, RandomizedNonceKey},
    hmac,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use subtle::ConstantTimeEq;

use crate::{Secret, StoreError, secrets::SecretCache};

/// The minimum length of a secret in bytes: that of the keys derived from it.
pub const SHORTEST: usize = 32;

/// The keys of one request, each with its fingerprint, the newest first.
pub(crate) struct EncryptionKeys {
    keys: Vec<(String, Secret)>,
    /// True if an old key cannot be read: what it signed seems to be of somebody else.
    pub(crate) is_incomplete: bool,
}

impl EncryptionKeys {
    pub(crate) async fn read(
        secrets: &Arc<SecretCache>,
        ids: &[String],
        left: Option<std::time::Duration>,
    ) -> Result<Self, StoreError> {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        let reads = secrets.read(&ids, left).await;
        let (mut keys, mut is_incomplete) = (Vec::new(), false);
        for (index, (id, read)) in ids.iter().zip(reads).enumerate() {
            match read {
                Ok(Some(secret)) if is_long_enough(&secret) => {
                    keys.push((fingerprint(&secret), secret));
                }
                Ok(Some(_)) => {
                    let text = format!("the secret '{id}' has fewer than {SHORTEST} bytes");
                    return Err(StoreError::undecodable(text));
                }
                // A deleted old key is no longer needed.
                Ok(None) if index > 0 => {}
                Err(error) if index > 0 => {
                    is_incomplete = true;
                    tracing::warn!(secret = id, %error, "an old key cannot be read");
                }
                Ok(None) => {
                    let text = format!("there is no secret '{id}', which encrypts users' tokens");
                    return Err(StoreError::denied(text));
                }
                Err(error) => return Err(error),
            }
        }
        if keys.is_empty() {
            let text = "no secret is configured to encrypt users' tokens";
            return Err(StoreError::denied(text));
        }
        Ok(Self {
            keys,
            is_incomplete,
        })
    }

    /// Encrypts a value, bound to its record (`record_id` is the associated data). Returns the key's
    /// id and the ciphertext.
    pub(super) fn seal<T: Serialize>(&self, record_id: &str, value: &T) -> (String, Vec<u8>) {
        let (id, secret) = &self.keys[0];
        let mut sealed = serde_json::to_vec(value).expect("our own values have string keys only");
        let key = aead_key(secret);
        let nonce = key
            .seal_in_place_append_tag(Aad::from(record_id), &mut sealed)
            .expect("texts are far shorter than the limit of AES-GCM");
        let mut all = nonce.as_ref().to_vec();
        all.append(&mut sealed);
        (id.clone(), all)
    }

    pub(super) fn open<T: DeserializeOwned>(
        &self,
        record_id: &str,
        key_id: &str,
        sealed: &[u8],
    ) -> Option<T> {
        let (_, secret) = self.keys.iter().find(|(id, _)| id == key_id)?;
        let (nonce, text) = sealed.split_at_checked(aws_lc_rs::aead::NONCE_LEN)?;
        let nonce = aws_lc_rs::aead::Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let opened = aead_key(secret).open_in_place(nonce, Aad::from(record_id), &mut text);
        serde_json::from_slice(opened.ok()?).ok()
    }

    /// Encrypts a value for a purpose, for clients and browsers that hand the text back unchanged.
    pub(crate) fn seal_text<T: Serialize>(&self, purpose: &str, value: &T) -> String {
        let (key_id, sealed) = self.seal(purpose, value);
        format!("{key_id}.{}", BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    pub(crate) fn open_text<T: DeserializeOwned>(&self, purpose: &str, text: &str) -> Option<T> {
        let (key_id, sealed) = text.split_once('.')?;
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        self.open(purpose, key_id, &sealed)
    }

    /// Returns the secrets, the newest first.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.keys.iter().map(|(_, secret)| secret)
    }

    pub(super) fn is_newest(&self, key_id: &str) -> bool {
        self.keys[0].0 == key_id
    }

    #[cfg(test)]
    pub(super) fn of<const N: usize>(secrets: [&str; N]) -> Self {
        let keys = secrets.map(Secret::from).into_iter();
        Self {
            keys: keys.map(|it| (fingerprint(&it), it)).collect(),
            is_incomplete: false,
        }
    }

    /// Signs with the newest key.
    pub(crate) fn sign(&self, purpose: &str, parts: &[&str]) -> String {
        self.sign_as(0, purpose, parts)
    }

    /// Returns the index of the key that made this signature. `None` if no key did.
    pub(crate) fn signer(&self, purpose: &str, parts: &[&str], signed: &str) -> Option<usize> {
        let is_signer = |(_, secret): &(String, Secret)| {
            let expected = signature(secret, purpose, parts);
            bool::from(expected.as_bytes().ct_eq(signed.as_bytes()))
        };
        self.keys.iter().position(is_signer)
    }

    /// Signs with the key at an index.
    pub(super) fn sign_as(&self, index: usize, purpose: &str, parts: &[&str]) -> String {
        signature(&self.keys[index].1, purpose, parts)
    }
}

/// Returns true if a secret can be used as a key.
pub(crate) fn is_long_enough(secret: &Secret) -> bool {
    secret.expose().trim().len() >= SHORTEST
}

/// Returns the key id that is stored with a ciphertext. Unlike the secret's id, it identifies the
/// key even after the secret's value has changed.
pub(crate) fn fingerprint(secret: &Secret) -> String {
    signature(secret, "fingerprint", &[])[..16].to_owned()
}

/// Derives the 32 bytes that a secret is used as for one purpose.
pub(crate) fn derived_key(secret: &Secret, purpose: &str) -> hmac::Tag {
    // Secrets pasted into a store often end with a line feed.
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().trim().as_bytes());
    hmac::sign(&key, format!("lambda_tools {purpose}").as_bytes())
}

fn aead_key(secret: &Secret) -> RandomizedNonceKey {
    let key = derived_key(secret, "encryption");
    RandomizedNonceKey::new(&AES_256_GCM, key.as_ref()).expect("an HMAC-SHA-256 has 32 bytes")
}

fn signature(secret: &Secret, purpose: &str, parts: &[&str]) -> String {
    let key = derived_key(secret, purpose);
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_ref());
    let mut context = hmac::Context::with_key(&key);
    for part in parts {
        // The lengths make sure that two different lists never have the same bytes.
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    BASE64_URL_SAFE_NO_PAD.encode(context.sign())
}
