//! Redaction in failures, log lines, panics and spans: a secret is gone in every encoding in which
//! the library promises to find it, and the search takes little memory.
//!
//! The first byte of an input chooses the encoding. The rest has fields that a NUL byte separates:
//! the secret, the text before the encoded secret, and the text after it.

use lambda_tools_core::secret::redaction::Redaction;

use crate::{
    MemoryBound, bounded,
    encodings::{SecretSearch, encodings_of},
};

/// A secret has two dozen encodings, and as many for each of its parts, each up to three times as
/// long. Of each byte, the automaton keeps a few words.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 16 << 10,
    base: 1 << 20,
};

/// The minimum length of a secret that is redacted, in bytes.
const SHORTEST: usize = 8;

const PLACEHOLDER: &str = "[secret]";

pub fn run(data: &[u8]) {
    let Some((secret, text)) = hidden(data) else {
        return;
    };
    let mut redacted = None;
    bounded(text.len() + secret.len(), BOUND, || {
        let secrets = [(secret, PLACEHOLDER)];
        redacted = Redaction::with_placeholders(secrets, SHORTEST).redacted(&text);
    });
    let redacted = redacted.expect("the text contains the secret");
    let search = SecretSearch::new([secret.trim()]);
    let left = search.found(redacted.replace(PLACEHOLDER, "\0").as_bytes());
    assert_eq!(left, None, "{secret:?} in {text:?}");
}

/// Returns the secret of an input, and a text that contains it in some encoding; `None` if the secret
/// is not one that is redacted.
fn hidden(data: &[u8]) -> Option<(&str, String)> {
    let (number, texts) = data.split_first()?;
    let mut fields = texts.splitn(3, |byte| *byte == 0);
    let mut text = || str::from_utf8(fields.next()?).ok();
    let (secret, before, after) = (text()?, text()?, text()?);
    if secret.trim().len() < SHORTEST || secret.len() > 64 {
        return None;
    }
    let encodings = encodings_of(secret.trim());
    let encoded = &encodings[usize::from(*number) % encodings.len()];
    Some((secret, format!("{before}{encoded}{after}")))
}
