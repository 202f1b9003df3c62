//! Limits for text that may be of any length, and the formatting of numbers.

use std::time::Duration;

pub use lambda_tools_schema::text::{LONGEST_NAME, clipped, closest, counted};
use serde_json::Number;

/// The maximum length, in bytes, of an id that a caller chooses for a call or a user. `OpenID`
/// Connect Core 1.0, section 8, limits a `sub` to 255.
pub const LONGEST_ID: usize = 256;

/// The maximum length, in bytes, of a text chosen by a caller in logs and traces, which are billed
/// by volume.
pub const LONGEST_SHOWN: usize = 256;

/// Returns the text with only the scheme and the host of each URL in it: the rest has values of
/// inputs, and sometimes credentials.
pub fn without_paths(mut text: &str) -> String {
    let mut plain = String::new();
    while let Some((before, rest)) = text.split_once("://") {
        let url = rest.split([' ', '\t', '\r', '\n', '"', '<', '>']).next();
        let url = url.unwrap_or_default();
        let url = url.trim_end_matches(|it| "):,;.'`".contains(it));
        let host = url.split(['/', '\\', '?', '#']).next().unwrap_or_default();
        let path = if host.len() < url.len() { "/…" } else { "" };
        let host = host.rsplit('@').next().unwrap_or_default();
        plain += &[before, "://", host, path].concat();
        text = &rest[url.len()..];
    }
    plain + text
}

/// Returns the bytes in hexadecimal digits, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text
}

/// Returns the scopes in a text: RFC 6749, 3.3.
pub fn separate_scopes(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_owned)
}

/// Returns the words as alternatives: `A`, `A or B`, `A, B or C`.
pub fn alternatives(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// Returns true if the text matches a pattern in which `*` is any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns the whole milliseconds of a duration, up to the largest integer.
pub fn whole_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns milliseconds with microsecond precision; whole milliseconds have no fraction.
pub fn milliseconds(duration: Duration) -> Number {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    if micros % 1000 == 0 {
        return Number::from(micros / 1000);
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 microseconds")]
    let ms = micros as f64 / 1000.0;
    Number::from_f64(ms).unwrap_or_else(|| Number::from(0))
}

#[cfg(test)]
mod tests {
    use super::{alternatives, matches, without_paths};

    const URLS: &str = r#"
no URL: /v1/patients => no URL: /v1/patients
for url (https://api.example:8443/patients/4711?q=a%20b#c): timeout => for url (https://api.example:8443/…): timeout
'https://api.example' => 'https://api.example'
https://api.example. => https://api.example.
http://[::1]:80/a)b(c?d => http://[::1]:80/…
https://a.example?q=1 or https://b.example#x, then => https://a.example/… or https://b.example/…, then
to https://a.example/x?to=https://b.example/4711 it => to https://a.example/… it
postgres://ada:p@ss@db.example/prod => postgres://db.example/…
url="https://a.example/\x"! => url="https://a.example/…"!
:// => ://
a://é/ü://b => a://é/…
"#;

    #[test]
    fn urls_lose_what_follows_their_host() {
        for row in URLS.lines().filter(|row| !row.is_empty()) {
            let (text, expected) = row.split_once(" => ").unwrap();
            assert_eq!(without_paths(text), expected);
        }
    }

    #[test]
    fn alternatives_are_joined_as_in_a_sentence() {
        assert_eq!(alternatives(&["A"]), "A");
        assert_eq!(alternatives(&["A", "B"]), "A or B");
        assert_eq!(alternatives(&["A", "B", "C"]), "A, B or C");
    }

    #[test]
    fn stars_match_any_text() {
        for (pattern, text, does) in [
            ("/pets/*", "/pets/{id}/photos", true),
            ("/pets", "/pets/{id}", false),
            ("*/photos", "/pets/{id}/photos", true),
            ("/a*b*c", "/axbyc", true),
            ("/a*b*c", "/acb", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), does, "{pattern} {text}");
        }
    }
}
