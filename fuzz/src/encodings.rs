//! The encodings of a secret that `docs/secrets.md` promises to find, and the search for them.

use base64::{
    Engine,
    engine::general_purpose::{GeneralPurpose, STANDARD, URL_SAFE},
};
use memchr::memmem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// RFC 3986, 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns a secret in all promised encodings.
pub(crate) fn encodings_of(secret: &str) -> Vec<String> {
    let json = without_quotes(&Value::from(secret).to_string());
    let all = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let reserved = utf8_percent_encode(secret, RESERVED).to_string();
    let in_form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let hex: String = secret.bytes().map(|it| format!("{it:02x}")).collect();
    let mut encodings = vec![
        secret.to_owned(),
        without_quotes(&Value::from(&*json).to_string()),
        json,
        without_quotes(&format!("{secret:?}")),
        with_lower_digits(&all),
        all,
        with_lower_digits(&reserved),
        reserved,
        with_lower_digits(&in_form),
        in_form,
        hex.to_uppercase(),
        hex,
    ];
    for engine in [&STANDARD, &URL_SAFE] {
        encodings.extend((0..3).map(|offset| in_base64(secret, offset, engine)));
    }
    encodings
}

fn without_quotes(quoted: &str) -> String {
    quoted[1..quoted.len() - 1].to_owned()
}

/// Writes the digits of every escape in lower case.
fn with_lower_digits(text: &str) -> String {
    let mut pieces = text.split('%');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        format!("{text}%{}{}", piece[..2].to_lowercase(), &piece[2..])
    })
}

/// Returns the characters that do not change with the bytes before and after the secret.
fn in_base64(secret: &str, offset: usize, engine: &GeneralPurpose) -> String {
    let [zeros, ones] = [0, 0xFF].map(|other| {
        let (before, after) = (vec![other; offset], [other; 2]);
        engine.encode([&before, secret.as_bytes(), &after].concat())
    });
    let pairs = zeros.chars().zip(ones.chars());
    pairs
        .filter_map(|(one, other)| (one == other && one != '=').then_some(one))
        .collect()
}

/// Searches texts for every encoding of some secrets.
pub(crate) struct SecretSearch(Vec<(memmem::Finder<'static>, String)>);

impl SecretSearch {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let encodings = secrets.into_iter().flat_map(encodings_of);
        let finder = |encoded: String| (memmem::Finder::new(&encoded).into_owned(), encoded);
        Self(encodings.map(finder).collect())
    }

    /// Returns the encoded secret that a text contains.
    pub(crate) fn found(&self, text: &[u8]) -> Option<&str> {
        let mut all = self.0.iter();
        let found = all.find(|(finder, _)| finder.find(text).is_some());
        found.map(|(_, encoded)| encoded.as_str())
    }
}
