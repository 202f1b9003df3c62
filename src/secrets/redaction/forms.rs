//! The encoded forms of a secret: base64, hex, lists of numbers, and the same for its parts.
//!
//! Escapes are not among them: [`TextReadings`](super::spelled::TextReadings) decodes those.

use std::fmt::Write;

use base64::{
    Engine,
    engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use secrecy::zeroize::Zeroizing;
use serde_json::Value;

/// A part of at most this many letters counts as an ordinary word and not as a secret.
const LONGEST_WORD: usize = 15;

/// The maximum number of parts of one secret that are searched for separately.
const MOST_PARTS: usize = 256;

/// Larger values are searched for in base64 and hex without another encoding inside: each of those
/// forms is at least as long as the value.
const LARGE: usize = 1024;

/// All characters except the unreserved ones of RFC 3986, 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The `application/x-www-form-urlencoded` set of the URL standard, before spaces become pluses.
const FORM: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b' ')
    .remove(b'*')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_');

type FormText = Zeroizing<String>;

/// A form, before it is packed into its [`Redactor`](super::Redactor).
pub(super) struct EncodedForm {
    pub(super) text: Zeroizing<Vec<u8>>,
    pub(super) takes_before: bool,
    pub(super) takes_after: bool,
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
    for inner in inner_encodings(value) {
        for upper in [false, true] {
            forms.push(whole(hex(inner.as_bytes(), upper)));
        }
        for offset in 0..3 {
            let standard = base64(inner.as_bytes(), offset, &STANDARD_NO_PAD);
            let url_safe = base64(inner.as_bytes(), offset, &URL_SAFE_NO_PAD);
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

/// The texts that may be encoded in base64 or hex: the value itself, or escaped for JSON, a URL or
/// a form.
fn inner_encodings(value: &str) -> Vec<FormText> {
    if value.len() > LARGE {
        return vec![Zeroizing::new(value.to_owned())];
    }
    let buffer = || String::with_capacity(value.len() * 3);
    let mut reserved = Zeroizing::new(buffer());
    reserved.extend(utf8_percent_encode(value, RESERVED));
    let mut percent = Zeroizing::new(buffer());
    percent.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
    let mut form = Zeroizing::new(buffer());
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
    let result = serde_json::to_writer(&mut *json, value);
    result.expect("writing text to memory does not fail");
    let text = str::from_utf8(&json[1..json.len() - 1]);
    Zeroizing::new(text.expect("JSON is UTF-8").to_owned())
}

fn hex(value: &[u8], upper: bool) -> FormText {
    let mut text = Zeroizing::new(String::with_capacity(value.len() * 2));
    for byte in value {
        let result = if upper {
            write!(text, "{byte:02X}")
        } else {
            write!(text, "{byte:02x}")
        };
        result.expect("writing to memory does not fail");
    }
    text
}

/// Bytes as in Rust's `Debug` and in JSON, without whitespace.
fn numbers(value: &[u8]) -> FormText {
    let mut text = Zeroizing::new(String::with_capacity(value.len() * 4));
    for byte in value {
        let comma = if text.is_empty() { "" } else { "," };
        write!(text, "{comma}{byte}").expect("writing to memory does not fail");
    }
    text
}

/// The characters of the encoding that depend on the value alone, if the number of bytes before it
/// is `offset` modulo 3.
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

/// The parts of a secret that are secrets themselves, such as those of `SID:TOKEN`, a URL with a
/// password, JSON, or the lines of a key.
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
                let is_secret = part.len() >= shortest && !is_word(&part) && *part != secret;
                if is_secret && !parts.contains(&part) {
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
