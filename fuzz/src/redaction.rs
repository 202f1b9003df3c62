//! Redaction in failures, log lines, panics and spans: a secret is gone in every form in which the
//! library promises to find it, and however long the text is, it takes little memory.
//!
//! The first byte of an input says how often the text before the secret is repeated. The rest has
//! fields that a NUL byte separates: the layers of encoding (a byte each, the first innermost), the
//! secret, the text before the encoded secret, and the text after it.

use lambda_tools::fuzzing;

use crate::{
    MemoryBound, bounded,
    forms::{Layer, encoded},
};

/// For each byte of the text: a position has up to 16 readings of 32 bytes, in a list that is
/// copied when it grows. A secret has a few dozen forms, each with a few times its length.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 2 << 10,
    base: 4 << 20,
};
/// For any text: the list of readings is limited.
const MOST_MEMORY: usize = 4 << 20;

/// The maximum length of a text, in bytes. Shorter ones reach all limits.
const LONGEST_TEXT: usize = 8 << 10;

/// The minimum length of a secret that is redacted, in bytes.
const SHORTEST: usize = 8;
/// The maximum length of an encoded secret, in bytes.
const LONGEST_ENCODED: usize = 2048;
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

    /// The text as it is when nothing of the secret is left.
    pub(crate) fn text_without_secret(&self) -> String {
        format!("{}{PLACEHOLDER}{}", self.before, self.after)
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
    (text.len() <= LONGEST_ENCODED).then_some(text)
}

pub fn run(data: &[u8]) {
    let Some((repetitions, data)) = data.split_first() else {
        return;
    };
    let Some(hidden) = Hidden::of(data, SHORTEST) else {
        return;
    };
    let before = hidden.before.repeat(repetitions_of(*repetitions));
    let hidden = Hidden {
        before: &before,
        ..hidden
    };
    let text = hidden.text();
    if text.len() > LONGEST_TEXT {
        return;
    }
    let bound = MemoryBound {
        per_byte: BOUND.per_byte.min(MOST_MEMORY / text.len()),
        ..BOUND
    };
    let mut redacted = None;
    bounded(text.len(), bound, || {
        redacted = fuzzing::redacted(&text, hidden.secret, SHORTEST);
    });
    let left = redacted.unwrap_or(text);
    assert_gone(&hidden, &[left], || vec![hidden.text_without_secret()]);
}

/// Mostly 1, because long texts take long.
fn repetitions_of(byte: u8) -> usize {
    match byte {
        ..240 => 1,
        240.. => 1 << ((byte - 238) / 2),
    }
}

/// Panics if the encoded secret, or a large part of it, is left in one of the texts. `control`
/// returns the texts as they are without the secret: a part that is in them too is not from it.
pub(crate) fn assert_gone(
    hidden: &Hidden<'_>,
    left: &[String],
    control: impl FnOnce() -> Vec<String>,
) {
    let left = without_placeholders(left);
    let pieces = pieces_of(hidden, left.len());
    let mut found = pieces.filter(|piece| left.contains(piece)).peekable();
    if found.peek().is_none() {
        return;
    }
    let control = without_placeholders(&control());
    if let Some(piece) = found.find(|piece| !control.contains(piece)) {
        let Hidden {
            secret, encoded, ..
        } = hidden;
        panic!("{secret:?}: {piece:?} of {encoded:?} in {left:?}");
    }
}

/// The encoded secret, and its parts that are too long to be in other text by chance.
fn pieces_of<'h>(hidden: &'h Hidden<'_>, length_of_text: usize) -> impl Iterator<Item = &'h str> {
    /// A shorter piece is in ordinary words by chance.
    const PIECE: usize = 12;
    /// A shorter piece, in characters of the secret, may encode a bracket of a list.
    const CHARACTERS: usize = 4;
    let encoded = hidden.encoded.as_str();
    let starts = encoded.char_indices().map(|(at, _)| at);
    let ends: Vec<_> = starts.chain([encoded.len()]).collect();
    let expansion = (ends.len() - 1) / hidden.secret.trim().chars().count();
    let length = PIECE.max(CHARACTERS * expansion);
    // A search for each of them takes long in a long text.
    let step = if length_of_text > 4096 { length } else { 1 };
    let starts = (0..ends.len().saturating_sub(length)).step_by(step);
    let pieces = starts.map(move |start| &encoded[ends[start]..ends[start + length]]);
    let is_telling =
        move |piece: &&str| piece.bytes().filter(u8::is_ascii_alphanumeric).count() > length / 2;
    [encoded].into_iter().chain(pieces.filter(is_telling))
}

/// A placeholder in recordings.
const PLACEHOLDER: &str = "PLACEHOLDER";

/// All texts as one. The placeholders in them are not from the secret, and neither are the letters
/// next to them.
fn without_placeholders(texts: &[String]) -> String {
    let placeholders = [
        "[secret]",
        "OTHER_VALUE_OF_KEY",
        "VALUE_OF_KEY",
        "VALUE_OF_K",
        "TOKEN_OF_g",
        PLACEHOLDER,
    ];
    let mut text = texts.join("\0");
    for placeholder in placeholders {
        text = text.replace(placeholder, "\0");
    }
    text
}
