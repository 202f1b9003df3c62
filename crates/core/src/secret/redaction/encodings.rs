//! The values in a secret, and the encodings in which text may contain each of them.

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::MOST_BYTES;
use crate::text::hex;

/// A part of at most this many letters counts as an ordinary word and not as a secret.
const LONGEST_WORD: usize = 15;

/// The encodings of a value, the likeliest first. Percent-encoding is not among them: text is searched
/// without it.
pub(super) const ENCODINGS: [fn(&str) -> String; 12] = [
    str::to_owned,
    |value| in_json(&in_json(value)),
    |value| without_quotes(&format!("{value:?}")),
    // In form encoding: every other plus sign is escaped itself.
    |value| value.replace(' ', "+"),
    |value| url_safe(&base64(value, 0)),
    |value| url_safe(&base64(value, 1)),
    |value| url_safe(&base64(value, 2)),
    |value| base64(value, 0),
    |value| base64(value, 1),
    |value| base64(value, 2),
    |value| hex(value.as_bytes()).to_ascii_uppercase(),
    |value| hex(value.as_bytes()),
];

fn in_json(value: &str) -> String {
    without_quotes(&serde_json::to_string(value).expect("text can be written as JSON"))
}

fn without_quotes(text: &str) -> String {
    text[1..text.len() - 1].to_owned()
}

fn url_safe(base64: &str) -> String {
    base64.replace('+', "-").replace('/', "_")
}

/// Returns the characters of the encoding that depend on the value alone, if the number of bytes
/// before it is `offset` modulo 3.
fn base64(value: &str, offset: usize) -> String {
    let bytes = [&[0; 2][..offset], value.as_bytes()].concat();
    let (first, end) = ((offset * 8).div_ceil(6), bytes.len() * 8 / 6);
    STANDARD_NO_PAD.encode(bytes)[first..end].to_owned()
}

/// Returns the secret itself, and those of its parts that are secrets themselves, such as those of
/// `SID:TOKEN`, a URL with a password, JSON, or the lines of a key.
pub(super) fn values_in(secret: &str, shortest: usize) -> impl Iterator<Item = String> {
    let trimmed = secret.trim();
    let mut texts = Vec::new();
    if (shortest..=MOST_BYTES).contains(&trimmed.len()) {
        match serde_json::from_str(trimmed) {
            Ok(json @ (Value::Object(_) | Value::Array(_))) => add_leaves(json, &mut texts),
            _ => texts.push(trimmed.to_owned()),
        }
    }
    let whole = [secret, trimmed].map(str::to_owned).into_iter();
    let whole = whole.filter(move |it| it.trim().len() >= shortest);
    let parts = texts.into_iter().flat_map(|text| parts_of(&text));
    let is_word = |part: &str| {
        let is_lower = part.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
        let is_upper = part.bytes().all(|byte| byte.is_ascii_uppercase());
        part.len() <= LONGEST_WORD
            && (is_upper || is_lower && part.starts_with(|it: char| it.is_ascii_alphabetic()))
    };
    whole.chain(parts.filter(move |part| part.len() >= shortest && !is_word(part)))
}

/// Returns the parts of a text between separators, also without their percent-encoding.
fn parts_of(text: &str) -> Vec<String> {
    let separators = if text.contains("://") {
        ":|,;=&@\n\t/?#"
    } else {
        ":|,;=&@\n\t"
    };
    let is_quote = |it: char| it.is_whitespace() || "\"'`()[]{}<>".contains(it);
    let parts = text.split(|it| separators.contains(it));
    let parts = parts.map(|part| part.trim_matches(is_quote));
    let parts = parts.chain([text.trim()]).flat_map(|part| {
        let decoded = percent_decode_str(part).decode_utf8_lossy();
        [part.to_owned(), decoded.into_owned()]
    });
    parts.collect()
}

/// Adds the texts and the numbers in a value.
fn add_leaves(json: Value, texts: &mut Vec<String>) {
    match json {
        Value::String(text) => texts.push(text),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(items) => items.into_iter().for_each(|it| add_leaves(it, texts)),
        Value::Object(fields) => fields.into_iter().for_each(|(_, it)| add_leaves(it, texts)),
        Value::Null | Value::Bool(_) => {}
    }
}
