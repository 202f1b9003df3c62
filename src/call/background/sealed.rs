//! Encryption of a call with a key that is used once.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

/// The code that starts a task: the key of its call, in base64url.
#[derive(Deserialize, Serialize)]
pub(super) struct Code(String);

impl Code {
    pub(super) fn new() -> Self {
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key).expect("the system has randomness");
        Self(BASE64_URL_SAFE_NO_PAD.encode(key))
    }

    fn key(&self) -> Option<RandomizedNonceKey> {
        let key = BASE64_URL_SAFE_NO_PAD.decode(&self.0).ok()?;
        RandomizedNonceKey::new(&AES_256_GCM, &key).ok()
    }

    /// Encrypts a call, bound to its task.
    pub(super) fn seal(&self, task: &str, call: &[u8]) -> Vec<u8> {
        let key = self.key().expect("a code is a key");
        let mut sealed = call.to_vec();
        let nonce = key
            .seal_in_place_append_tag(Aad::from(task), &mut sealed)
            .expect("calls are far shorter than the limit of AES-GCM");
        [&nonce.as_ref()[..], &sealed].concat()
    }

    pub(super) fn open(&self, task: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, call) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut call = call.to_vec();
        let opened = self.key()?.open_in_place(nonce, Aad::from(task), &mut call);
        Some(opened.ok()?.to_vec())
    }
}
