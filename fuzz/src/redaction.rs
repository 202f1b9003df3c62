//! Redaction in failures, log lines, panics and spans: a secret is gone in
//! every form in which the library promises to find it.
//!
//! An input has fields that a NUL byte separates: the layers of encoding (a byte each, the first
//! innermost), the secret, the text before the encoded secret, and the text after it.

use lambda_tools::fuzzing;

use crate::{
    MemoryBound, bounded,
    forms::{Layer, encoded},
};

/// A secret has a few dozen forms, each with a few times its length, and the same for its parts.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 16 << 10,
    base: 4 << 20,
};

/// The minimum length of a secret that is redacted, in bytes.
const SHORTEST: usize = 8;
/// Forms of forms grow; more layers than that are searched through, but make inputs slow.
const MOST_LAYERS: usize = 3;

/// A secret, and a text that contains it in some form.
pub(crate) struct Hidden<'a> {
    pub(crate) secret: &'a str,
    pub(crate) encoded: String,
    pub(crate) before: &'a str,
    pub(crate) after: &'a str,
}

impl<'a> Hidden<'a> {
    /// The fields of an input; `None` if the secret is not one that is redacted.
    pub(crate) fn of(data: &'a [u8], shortest: usize) -> Option<Self> {
        let mut fields = data.splitn(4, |byte| *byte == 0);
        let layers = fields.next()?;
        let mut text = || str::from_utf8(fields.next()?).ok();
        let (secret, before, after) = (text()?, text()?, text()?);
        if secret.trim().len() < shortest || secret.len() > 64 || layers.len() > MOST_LAYERS {
            return None;
        }
        let encoded = encode(secret.trim(), layers)?;
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
}

/// The promised forms: escapes in any number, of which one may be inside base64 or hexadecimal, and
/// escapes around that. A list of byte values is one form for the plain text.
fn encode(secret: &str, layers: &[u8]) -> Option<String> {
    let mut text = secret.to_owned();
    let mut escapes = 0;
    let mut is_whole = false;
    for layer in layers.iter().map(|byte| Layer::of(*byte)) {
        if layer.is_escape() {
            escapes += 1;
        } else if is_whole || escapes > 1 || (layer == Layer::Numbers && escapes > 0) {
            return None;
        } else {
            is_whole = true;
            let other = layers.first().map(|byte| Layer::of(*byte));
            // Of the escapes, those that other programs use before base64 are promised.
            let is_promised = [Layer::Percent, Layer::Form, Layer::Json];
            if escapes == 1 && !other.is_some_and(|it| is_promised.contains(&it)) {
                return None;
            }
            if let Layer::Base64(engine) = layer {
                text = encoded(engine, text.as_bytes());
                continue;
            }
        }
        text = layer.apply(&text);
    }
    Some(text)
}

pub fn run(data: &[u8]) {
    bounded(data, BOUND, || check(data));
}

fn check(data: &[u8]) {
    let Some(hidden) = Hidden::of(data, SHORTEST) else {
        return;
    };
    let text = hidden.text();
    let redacted =
        fuzzing::redacted(&text, hidden.secret, SHORTEST).unwrap_or_else(|| text.clone());
    assert_gone(&hidden, &redacted);
}

/// Panics if the encoded secret, or a large part of it, is left in a text.
pub(crate) fn assert_gone(hidden: &Hidden<'_>, left: &str) {
    /// A shorter piece is in ordinary words by chance.
    const PIECE: usize = 12;
    /// A shorter piece, in characters of the secret, may encode a bracket of a list.
    const CHARACTERS: usize = 4;
    let encoded = hidden.encoded.as_str();
    let ends: Vec<_> = encoded
        .char_indices()
        .map(|(at, _)| at)
        .chain([encoded.len()])
        .collect();
    let around = format!("{}{}", hidden.before, hidden.after);
    // As it is, and as the JSON of a recording writes it.
    let around = format!("{around}{}", serde_json::Value::from(around.as_str()));
    if resembles(encoded, &around) {
        return;
    }
    // The placeholders, and the letters next to them, are not from the secret.
    let left = &without_placeholders(left);
    assert!(
        !left.contains(encoded),
        "{:?} {encoded:?} in {left:?}",
        hidden.secret
    );
    let expansion = ends.len() / hidden.secret.trim().chars().count();
    let length = PIECE.max(CHARACTERS * expansion);
    for window in ends.windows(length + 1) {
        let piece = &encoded[window[0]..window[length]];
        let is_telling = piece.bytes().filter(u8::is_ascii_alphanumeric).count() > length / 2;
        let is_left = is_telling && left.contains(piece);
        assert!(
            !is_left,
            "{:?}: {piece:?} of {encoded:?} in {left:?}",
            hidden.secret
        );
    }
}

/// True if a piece of the encoded secret is in another text by chance.
pub(crate) fn resembles(encoded: &str, text: &str) -> bool {
    const PIECE: usize = 6;
    let ends: Vec<_> = encoded
        .char_indices()
        .map(|(at, _)| at)
        .chain([encoded.len()])
        .collect();
    ends.windows(PIECE + 1)
        .any(|window| text.contains(&encoded[window[0]..window[PIECE]]))
}

fn without_placeholders(text: &str) -> String {
    let placeholders = [
        "[secret]",
        "OTHER_VALUE_OF_KEY",
        "VALUE_OF_KEY",
        "VALUE_OF_K",
        "TOKEN_OF_g",
        "PLACEHOLDER",
    ];
    let mut text = text.to_owned();
    for placeholder in placeholders {
        text = text.replace(placeholder, "\0");
    }
    text
}
