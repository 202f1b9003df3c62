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

/// A secret, and a text that contains it in some encoding.
pub(crate) struct Hidden<'a> {
    pub(crate) secret: &'a str,
    pub(crate) encoded: String,
    before: &'a str,
    after: &'a str,
}

impl<'a> Hidden<'a> {
    /// Returns the fields of an input; `None` if the secret is not one that is redacted.
    pub(crate) fn of(data: &'a [u8], shortest: usize) -> Option<Self> {
        let (number, texts) = data.split_first()?;
        let mut fields = texts.splitn(3, |byte| *byte == 0);
        let mut text = || str::from_utf8(fields.next()?).ok();
        let (secret, before, after) = (text()?, text()?, text()?);
        if secret.trim().len() < shortest || secret.len() > 64 {
            return None;
        }
        let mut encodings = encodings_of(secret.trim());
        let encoded = encodings.swap_remove(usize::from(*number) % encodings.len());
        Some(Self {
            secret,
            encoded,
            before,
            after,
        })
    }

    pub(crate) fn text(&self) -> String {
        format!("{}{}{}", self.before, self.encoded, self.after)
    }

    /// Returns the text as it is when nothing of the secret is left.
    pub(crate) fn text_without_secret(&self) -> String {
        format!("{}-{}", self.before, self.after)
    }

    /// Returns the encoded secret that one of these texts contains besides the placeholder.
    pub(crate) fn left_in(&self, texts: &[String], placeholders: &[&str]) -> Option<String> {
        let mut text = texts.join("\0");
        for placeholder in placeholders {
            text = text.replace(placeholder, "\0");
        }
        let search = SecretSearch::new([self.secret.trim()]);
        search.found(text.as_bytes()).map(str::to_owned)
    }
}

pub fn run(data: &[u8]) {
    let Some(hidden) = Hidden::of(data, SHORTEST) else {
        return;
    };
    let text = hidden.text();
    let mut redacted = None;
    bounded(text.len() + hidden.secret.len(), BOUND, || {
        let secrets = [(hidden.secret, PLACEHOLDER)];
        redacted = Redaction::with_placeholders(secrets, SHORTEST).redacted(&text);
    });
    let redacted = redacted.expect("the text contains the secret");
    let left = hidden.left_in(&[redacted], &[PLACEHOLDER]);
    assert_eq!(left, None, "{:?} in {text:?}", hidden.secret);
}
