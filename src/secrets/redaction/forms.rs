//! The forms that a secret has where it is not written as it is: base64, hex, numbers, parts.
//!
//! Escapes are no such forms: [`SpelledOut`](super::spelled::SpelledOut) reads them.

use std::fmt::Write;

use base64::{
    Engine,
    engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use secrecy::zeroize::Zeroizing;
use serde_json::Value;

use super::spelled::{HEAD, head_of};

/// Words that are no secrets by themselves are no longer, and have nothing but letters.
const LONGEST_WORD: usize = 15;

/// More parts of one secret are not looked for by themselves.
const MOST_PARTS: usize = 256;

/// Larger values are looked for in base64 and hex as they are only, not in other encodings before:
/// each is as long as the value, and longer.
const LARGE: usize = 1024;

/// RFC 3986, 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The URL standard's `application/x-www-form-urlencoded`, before spaces become pluses.
const FORM: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b' ')
    .remove(b'*')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_');

type FormText = Zeroizing<String>;

/// What is searched for.
pub(super) struct EncodedForm {
    pub(super) text: Zeroizing<Vec<u8>>,
    /// Whether the character before it has bits of the secret.
    pub(super) takes_before: bool,
    /// Whether the character after it has, behind which there may be padding.
    pub(super) takes_after: bool,
}

impl EncodedForm {
    /// None is shorter.
    pub(super) fn head(&self) -> u64 {
        head_of(&self.text[..HEAD])
    }
}

/// All forms of a secret, none shorter than `shortest` characters.
pub(super) fn forms_of(secret: &str, shortest: usize) -> Vec<EncodedForm> {
    let mut forms = Vec::new();
    if secret.trim().len() < shortest {
        return forms;
    }
    if secret != secret.trim() {
        forms.push(whole(Zeroizing::new(secret.to_owned())));
    }
    let secret = secret.trim();
    add_forms(secret, &mut forms);
    for part in parts_of(secret, shortest) {
        add_forms(&part, &mut forms);
    }
    forms
}

fn add_forms(value: &str, forms: &mut Vec<EncodedForm>) {
    forms.push(whole(Zeroizing::new(value.to_owned())));
    forms.push(whole(numbers(value.as_bytes())));
    for written in encoded(value) {
        for upper in [false, true] {
            forms.push(whole(hex(written.as_bytes(), upper)));
        }
        for offset in 0..3 {
            let standard = base64(written.as_bytes(), offset, &STANDARD_NO_PAD);
            let url_safe = base64(written.as_bytes(), offset, &URL_SAFE_NO_PAD);
            let differ = standard.text != url_safe.text;
            forms.push(standard);
            forms.extend(differ.then_some(url_safe));
        }
    }
}

fn whole(text: FormText) -> EncodedForm {
    EncodedForm {
        text: bytes(text),
        takes_before: false,
        takes_after: false,
    }
}

fn bytes(mut text: FormText) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(std::mem::take(&mut *text).into_bytes())
}

/// What becomes base64 or hex: the value, or the JSON, URL or form that it is in.
fn encoded(value: &str) -> Vec<FormText> {
    if value.len() > LARGE {
        return vec![Zeroizing::new(value.to_owned())];
    }
    let room = || String::with_capacity(value.len() * 3);
    let mut reserved = Zeroizing::new(room());
    reserved.extend(utf8_percent_encode(value, RESERVED));
    let mut percent = Zeroizing::new(room());
    percent.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
    let mut form = Zeroizing::new(room());
    for piece in utf8_percent_encode(value, FORM) {
        form.extend(piece.chars().map(|c| if c == ' ' { '+' } else { c }));
    }
    let mut all = vec![Zeroizing::new(value.to_owned())];
    for other in [in_json(value), reserved, percent, form] {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

fn in_json(value: &str) -> FormText {
    let mut json = Zeroizing::new(Vec::with_capacity(value.len() * 6 + 2));
    let written = serde_json::to_writer(&mut *json, value);
    written.expect("writing text to memory does not fail");
    let text = str::from_utf8(&json[1..json.len() - 1]);
    Zeroizing::new(text.expect("JSON is UTF-8").to_owned())
}

fn hex(value: &[u8], upper: bool) -> FormText {
    let mut text = Zeroizing::new(String::with_capacity(value.len() * 2));
    for byte in value {
        let written = if upper {
            write!(text, "{byte:02X}")
        } else {
            write!(text, "{byte:02x}")
        };
        written.expect("writing to memory does not fail");
    }
    text
}

/// As in Rust's `Debug` of bytes, and in JSON, without the blanks.
fn numbers(value: &[u8]) -> FormText {
    let mut text = Zeroizing::new(String::with_capacity(value.len() * 4));
    for byte in value {
        let comma = if text.is_empty() { "" } else { "," };
        write!(text, "{comma}{byte}").expect("writing to memory does not fail");
    }
    text
}

/// The characters that the value alone decides where `offset` bytes, and any number of threes of
/// them, stand before it.
fn base64(value: &[u8], offset: usize, engine: &GeneralPurpose) -> EncodedForm {
    let mut bytes = Zeroizing::new(Vec::with_capacity(offset + value.len()));
    bytes.resize(offset, 0);
    bytes.extend_from_slice(value);
    let all = Zeroizing::new(engine.encode(&*bytes));
    let (first, end) = ((offset * 8).div_ceil(6), bytes.len() * 8 / 6);
    EncodedForm {
        text: Zeroizing::new(all.as_bytes()[first..end].to_vec()),
        takes_before: offset != 0,
        takes_after: !bytes.len().is_multiple_of(3),
    }
}

/// What is a secret by itself in one that has several, such as `SID:TOKEN`, a URL with a password,
/// JSON, or the lines of a key.
fn parts_of(secret: &str, shortest: usize) -> Vec<FormText> {
    let mut texts = Vec::new();
    match serde_json::from_str(secret) {
        Ok(json @ (Value::Object(_) | Value::Array(_))) => leaves(json, &mut texts),
        _ => texts.push(Zeroizing::new(secret.to_owned())),
    }
    let mut parts: Vec<FormText> = Vec::new();
    let is_quote = |c: char| c.is_whitespace() || "\"'`()[]{}<>".contains(c);
    for text in &texts {
        let url = if text.contains("://") { "/?#" } else { "" };
        let split = text.split(|c| ":|,;=&@\n\t".contains(c) || url.contains(c));
        let split = split.map(|part| part.trim_matches(is_quote));
        for part in split.chain([text.trim()]) {
            let decoded = percent_decode_str(part).decode_utf8_lossy().into_owned();
            for part in [part.to_owned(), decoded].map(Zeroizing::new) {
                let is_one = part.len() >= shortest && !is_word(&part) && *part != secret;
                if is_one && !parts.contains(&part) {
                    parts.push(part);
                }
                if parts.len() >= MOST_PARTS {
                    return parts;
                }
            }
        }
    }
    parts
}

fn is_word(part: &str) -> bool {
    let is_lower = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_upper = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase());
    let capitalized = part.strip_prefix(|first: char| first.is_ascii_uppercase());
    part.len() <= LONGEST_WORD && (is_upper(part) || is_lower(capitalized.unwrap_or(part)))
}

fn leaves(json: Value, texts: &mut Vec<FormText>) {
    match json {
        Value::String(text) => texts.push(Zeroizing::new(text)),
        Value::Number(number) => texts.push(Zeroizing::new(number.to_string())),
        Value::Array(items) => items.into_iter().for_each(|item| leaves(item, texts)),
        Value::Object(fields) => fields.into_iter().for_each(|(_, it)| leaves(it, texts)),
        Value::Null | Value::Bool(_) => {}
    }
}
