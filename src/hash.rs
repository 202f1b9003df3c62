//! The hash of a list of texts.

use sha2::{Digest, Sha256};

/// Returns half of the SHA-256 of texts, in hexadecimal digits. Each is hashed with its length, so that
/// different lists never have the same bytes.
pub(crate) fn of_texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.as_ref().len() as u64).to_be_bytes());
        hash.update(text.as_ref());
    }
    let hash = hash.finalize();
    let half = hash.first_chunk().expect("a SHA-256 hash has 32 bytes");
    format!("{:032x}", u128::from_be_bytes(*half))
}
