//! Tests with secrets in all encodings that other programs use.

use std::{
    fmt::Write,
    sync::LazyLock,
    time::{Duration, Instant},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use serde_json::Value;
use url::Url;

use super::*;

const SECRETS: [&str; 8] = [
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "p@ss w0rd/+=&?#%\"\\'~! it is",
    "AC0123456789abcdef0123456789abcdef:token-0123456789abcdef:+15005550006",
    "abcd+efg/hijk=lm0==",
    "postgres://admin:hunter2-hunter2@db.internal.example/prod?sslmode=require",
    "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n/+8wVVBGmnr2\n-----END KEY-----",
    "pässwört-🔑-0123",
    r"C:\newest\tokens\u0041bc",
];

fn redaction<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Redaction {
    let mut redaction = Redaction::default();
    for secret in secrets {
        redaction.add(&Arc::new(Redactor::new(secret, SHORTEST)));
    }
    redaction
}

fn redacted(text: &str, secret: &str) -> String {
    let redacted = redaction([secret]).redacted(text);
    redacted.unwrap_or_else(|| text.to_owned())
}

fn percent(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn every_character(text: &str) -> String {
    let mut escaped = String::new();
    for unit in text.encode_utf16() {
        write!(escaped, "\\u{unit:04x}").unwrap();
    }
    escaped
}

/// A URL that the `url` crate builds.
fn url(change: impl FnOnce(&mut Url)) -> String {
    let mut url = Url::parse("https://a.example/").unwrap();
    change(&mut url);
    url.to_string()
}

/// The secret in every encoding, with the names of the encodings.
fn encodings(secret: &str) -> Vec<(String, String)> {
    let bytes = secret.as_bytes();
    let json = quoted(secret);
    let mut all = vec![
        ("plain", secret.to_owned()),
        ("percent", percent(secret)),
        (
            "lower-case percent",
            Layer::Percent((0..0x7F).collect(), true).apply(secret),
        ),
        ("percent twice", percent(&percent(secret))),
        ("percent three times", percent(&percent(&percent(secret)))),
        (
            "percent in part",
            utf8_percent_encode(secret, CONTROLS).to_string(),
        ),
        (
            "query",
            url(|url| {
                url.query_pairs_mut().append_pair("k", secret);
            }),
        ),
        ("raw query", url(|url| url.set_query(Some(secret)))),
        ("fragment", url(|url| url.set_fragment(Some(secret)))),
        (
            "path",
            url(|url| {
                url.path_segments_mut().unwrap().push(secret);
            }),
        ),
        (
            "password",
            url(|url| url.set_password(Some(secret)).unwrap()),
        ),
        ("json", json.clone()),
        ("json in json", quoted(&json)),
        ("json in json in json", quoted(&quoted(&json))),
        ("json with slashes", json.replace('/', "\\/")),
        (
            "careful json",
            json.replace('=', "\\u003d").replace('&', "\\u0026"),
        ),
        ("ascii", every_character(secret)),
        ("ascii in json", quoted(&every_character(secret))),
        ("debug", format!("{secret:?}")),
        ("debug of debug", format!("{:?}", format!("{secret:?}"))),
        ("debug of bytes", format!("{bytes:?}")),
        ("pretty debug of bytes", format!("{bytes:#?}")),
        ("debug of that", format!("{:?}", format!("{bytes:#?}"))),
        ("numbers in json", Value::from(bytes).to_string()),
        ("byte string", bytes.escape_ascii().to_string()),
        ("hex", hex(secret)),
        ("upper-case hex", hex(secret).to_uppercase()),
        ("hex of json", hex(&json)),
        ("base64 of json", STANDARD.encode(&json)),
        ("base64 of percent", STANDARD.encode(percent(secret))),
        ("percent of json", percent(&json)),
        ("json of percent", quoted(&percent(secret))),
    ];
    if !secret.contains(['\n', '\\']) {
        // A URL parser drops line breaks and replaces backslashes.
        let text = format!("https://u:{}@a.example/{secret}", percent(secret));
        let parsed = Url::parse(&text);
        all.extend(parsed.ok().map(|url| ("parsed", url.to_string())));
    }
    let mut all: Vec<_> = all
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text))
        .collect();
    for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
        for before in ["", "u", "us", "user:"] {
            for after in ["", "@"] {
                let text = engine.encode(format!("{before}{secret}{after}"));
                all.push((format!("percent of base64 {before}{after}"), percent(&text)));
                let slashes = text.replace('/', "\\/");
                all.push((format!("json of base64 {before}{after}"), slashes));
                all.push((format!("base64 {before}{after}"), text));
            }
        }
    }
    all
}

/// Asserts that no recognizable piece of the encoded text is left.
fn assert_gone(what: &str, redacted: &str, encoded: &str) {
    let harmless = [
        "https://:@a.example/?k=",
        "https://a.example/?k=",
        "https://a.example/#",
        "https://u:@a.example/",
        PLACEHOLDER,
    ];
    let characters: Vec<_> = encoded.char_indices().map(|(at, _)| at).collect();
    for window in characters.windows(9) {
        let piece = &encoded[window[0]..window[8]];
        let is_left = piece.matches(char::is_alphanumeric).count() > 2
            && redacted.contains(piece)
            && !harmless.iter().any(|it| it.contains(piece));
        assert!(!is_left, "{what}: {piece} of {encoded} in {redacted}");
    }
}

#[test]
fn a_secret_is_redacted_in_every_encoding() {
    let mut cases = 0;
    for secret in SECRETS {
        for (name, encoded) in encodings(secret) {
            for (before, after) in [
                ("", ""),
                ("no answer from <", ">: (7%)\\"),
                ("é\"", "\"\n,é"),
            ] {
                let text = format!("{before}{encoded}{after}");
                let redacted = redacted(&text, secret);
                let what = format!("{secret} as {name}");
                assert!(redacted.contains(PLACEHOLDER), "{what}: {text}");
                assert!(redacted.starts_with(before), "{what}: {redacted}");
                assert!(redacted.ends_with(after), "{what}: {redacted}");
                assert_gone(&what, &redacted, &encoded);
                cases += 1;
            }
        }
    }
    assert!(cases > 150 * 3, "{cases}");
}

#[test]
fn a_secret_that_contains_an_escaped_backslash_is_redacted() {
    for secret in [
        r"C:\newest\u005c0041bc",
        r"C:\newest\x5c0041bc",
        r"C:\newest\%5C0041bc",
        "%ab%5Cabcdxy",
        "%%5021%5C%01#",
        r"0\u005c7",
    ] {
        let debug = format!("{secret:?}");
        let escaped = |character| format!(r"\\u{:04x}", u32::from(character));
        let characters: String = secret.chars().map(escaped).collect();
        let in_url = percent(&quoted(&quoted(secret)));
        for text in [
            quoted(secret),
            quoted(&quoted(secret)),
            debug,
            characters,
            percent(&quoted(secret)),
            percent(&in_url),
            in_url,
        ] {
            let redacted = redacted(&format!("<{text}>"), secret);
            assert!(redacted.contains(PLACEHOLDER), "{text}: {redacted}");
            assert_gone("quoted", &redacted, &text);
        }
    }
}

#[test]
fn the_parts_of_a_secret_are_redacted() {
    for (secret, parts) in [
        (
            SECRETS[2],
            &[
                "AC0123456789abcdef0123456789abcdef",
                "token-0123456789abcdef",
                "+15005550006",
            ][..],
        ),
        (SECRETS[4], &["hunter2-hunter2", "db.internal.example"]),
        (
            "postgres://u:p%40ssw0rd@db.example/x",
            &["p%40ssw0rd", "p@ssw0rd"],
        ),
        (
            "https://hooks.example/services/T0/xyz0123456789",
            &["xyz0123456789"],
        ),
        (SECRETS[5], &["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"]),
        (
            r#"{"user": "services", "password": "not \"that\"", "keys": ["key\nMIIEvQIBADAN", 1234567890]}"#,
            &["not \"that\"", "MIIEvQIBADAN", "1234567890"],
        ),
    ] {
        for part in parts {
            for (name, encoded) in encodings(part) {
                let redacted = redacted(&format!("<{encoded}>"), secret);
                assert!(
                    redacted.contains(PLACEHOLDER),
                    "{part} as {name}: {encoded}"
                );
                assert_gone(&format!("{part} as {name}"), &redacted, &encoded);
            }
        }
        let ordinary = "postgres services require user password example.com";
        assert_eq!(redacted(ordinary, secret), ordinary);
    }
}

#[test]
fn the_text_around_a_secret_is_unchanged() {
    let secret = "top \"secret\"\n";
    for (text, expected) in [
        ("it is top \"secret\"\n!", "it is [secret]!"),
        ("it is top \"secret\"", "it is [secret]"),
        (r#"{"key": "top \"secret\"\n"}"#, r#"{"key": "[secret]"}"#),
        (
            "https://a.example/?key=top%20%22secret%22%0A&x=1",
            "https://a.example/?key=[secret]&x=1",
        ),
        ("?key=top+%22secret%22&x=1", "?key=[secret]&x=1"),
        ("Basic dTp0b3AgInNlY3JldCI=, then", "Basic dT[secret], then"),
        (
            "[1, 116, 111, 112, 32, 34, 115, 101, 99, 114, 101, 116, 34, 2]",
            "[1, [secret], 2]",
        ),
    ] {
        assert_eq!(redacted(text, secret), expected);
    }
}

#[test]
fn overlapping_secrets_are_redacted_together() {
    let host = "db.example.com";
    let url = "postgres://u:password@db.example.com/x";
    for secrets in [[host, url], [url, host]] {
        let redacted = redaction(secrets).redacted(&format!("no connection to {url}"));
        assert_eq!(redacted.unwrap(), "no connection to [secret]");
    }
    // Neither contains the other.
    let redacted = redaction(["first-second", "second-third"]).redacted("<first-second-third>");
    assert_eq!(redacted.unwrap(), "<[secret]>");
}

#[test]
fn the_placeholder_of_the_longest_match_is_used() {
    let mut redaction = Redaction::default();
    for (secret, placeholder) in [("short!", "A"), ("a-short!-one", "B")] {
        let redactor = Redactor::with_placeholder(secret, SHORTEST_TO_RECORD, placeholder);
        redaction.add(&Arc::new(redactor));
    }
    let redacted = redaction.redacted("short! a-short!-one short!");
    assert_eq!(redacted.unwrap(), "A B A");
}

#[test]
fn text_without_secrets_is_unchanged() {
    let redaction = redaction(
        SECRETS
            .into_iter()
            .chain(["to", "", "other-key", " short \n"]),
    );
    for text in [
        "",
        "go to it",
        "short",
        "other keys",
        "100% of \\n %zz %4 \\u00 \\ud83d \\ud83d\\ud83d \\u{110000} \\x4 \\",
        "[1, 2, 3,\n 4]",
        "services postgres hunter token AC0123 sslmode require",
        "https://a.example/?a=1+2&b=%20%25",
        "{\"a\": \"b\\\"c\\\\\\\"d\"}",
        "dXNlcjpwYXNzd29yZA==",
        "é🔑ß",
    ] {
        assert_eq!(redaction.redacted(text), None, "{text}");
    }
}

#[test]
fn the_forms_of_a_secret_are_in_one_piece_of_memory() {
    for secret in SECRETS {
        let redactor = Redactor::new(secret, SHORTEST);
        let mut end = redactor.form(0).text.as_ptr();
        for form in redactor.forms() {
            assert_eq!(form.text.as_ptr(), end, "{secret}");
            end = form.text.as_ptr_range().end;
        }
        // Nothing is left behind where it was smaller, and no memory is unused.
        let length: usize = redactor.forms().map(|form| form.text.len()).sum();
        assert_eq!(redactor.capacity_of_texts(), length, "{secret}");
    }
}

#[test]
fn a_removed_secret_is_not_redacted() {
    // The second one begins like the first one, the third one does not.
    for other in ["first-token", "second-key"] {
        let mut redaction = redaction(["first-key"]);
        let other = (other, Arc::new(Redactor::new(other, SHORTEST)));
        // Again, after what was removed.
        for _ in 0..2 {
            redaction.add(&other.1);
            let text = format!("first-key {}", other.0);
            assert_eq!(redaction.redacted(&text).unwrap(), "[secret] [secret]");
            redaction.remove(&other.1);
            redaction.remove(&other.1);
            redaction.tidy();
            let expected = format!("[secret] {}", other.0);
            assert_eq!(redaction.redacted(&text).unwrap(), expected);
        }
    }
}

/// The processor time of this thread, which does not depend on other tests; without Linux, the time.
pub(in crate::secrets) fn thread_time() -> Duration {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let elapsed = STARTED.elapsed();
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat");
    schedule.map_or(elapsed, |text| {
        let nanoseconds = text.split(' ').next().unwrap().parse().unwrap();
        Duration::from_nanos(nanoseconds)
    })
}

#[test]
fn texts_with_many_readings_are_redacted_quickly() {
    let redaction = redaction([
        "%%%%%%%%%%",
        "\\\\\\\\\\\\\\\\\\\\",
        "%25%25%25%25",
        "1, 2, 3, 4, 5",
    ]);
    let started = thread_time();
    for piece in [
        "%",
        "\\",
        "%25",
        "%5C",
        "%%32%35",
        "\\u005c",
        "1, ",
        ", ",
        "25",
        "\\%5c\\x25",
    ] {
        let text = format!("%{}", piece.repeat(5_000 / piece.len()));
        redaction.redacted(&text);
    }
    let taken = thread_time().checked_sub(started).unwrap();
    assert!(taken.as_secs() < 5, "{taken:?}");
}

#[test]
fn a_text_with_too_many_escapes_is_redacted_as_a_whole() {
    let secret = "0123456789ab";
    let text = format!("{secret}{}", r"\\u005c".repeat(100_000));
    assert_eq!(redacted(&text, secret), PLACEHOLDER);
    let text = format!("{secret}{}", "\\\"".repeat(100_000));
    assert_eq!(redacted(&text, secret), text.replace(secret, PLACEHOLDER));
}

#[test]
fn the_matches_in_a_text_take_little_memory() {
    let secret = format!("9107,{}A", r"\\".repeat(20));
    let redaction = redaction([&*secret]);
    for text in [
        every_character(&secret),
        quoted(&every_character(&secret)),
        quoted(&quoted(&secret)),
    ] {
        let text = text.repeat(20_000 / text.len());
        let matches = redaction.matches(&text).len();
        assert!(
            (1..=text.len()).contains(&matches),
            "{matches} matches in {} bytes",
            text.len()
        );
    }
}

fn secret() -> impl Strategy<Value = String> {
    "[!-~][ -~äß€🔑\n\t]{6,40}[!-~]"
}

/// A layer of escapes.
#[derive(Clone, Debug)]
enum Layer {
    Percent(Vec<u8>, bool),
    Json,
    Slashes,
    Debug,
    Ascii,
}

impl Layer {
    fn apply(&self, text: &str) -> String {
        match self {
            Self::Json => quoted(text),
            Self::Slashes => quoted(text).replace('/', "\\/"),
            Self::Debug => {
                let debug = format!("{text:?}");
                debug[1..debug.len() - 1].to_owned()
            }
            Self::Ascii => every_character(text),
            Self::Percent(bytes, lower) => {
                let all = bytes
                    .iter()
                    .fold(CONTROLS.add(b'%'), |set, byte| set.add(*byte));
                let all: &'static AsciiSet = Box::leak(Box::new(all));
                let pieces = utf8_percent_encode(text, all);
                let lowercase = |piece: &str| match piece.strip_prefix('%') {
                    Some(digits) if *lower => format!("%{}", digits.to_lowercase()),
                    _ => piece.to_owned(),
                };
                pieces.map(lowercase).collect()
            }
        }
    }
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let percent = (
        proptest::collection::vec(0x20_u8..0x7F, 0..40),
        any::<bool>(),
    );
    let layer = prop_oneof![
        percent.prop_map(|(bytes, lower)| Layer::Percent(bytes, lower)),
        Just(Layer::Json),
        Just(Layer::Slashes),
        Just(Layer::Debug),
        Just(Layer::Ascii),
    ];
    proptest::collection::vec(layer, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn layers_of_escapes_do_not_hide_a_secret(secret in secret(), layers in layers()) {
        let encoded = layers.iter().fold(secret.clone(), |text, layer| layer.apply(&text));
        let redacted = redacted(&format!("é<{encoded}>é"), &secret);
        prop_assert_eq!(redacted, "é<[secret]>é", "{}", encoded);
    }

    #[test]
    fn encodings_below_layers_of_escapes_do_not_hide_a_secret(
        secret in secret(), before in "[ -~]{0,7}", after in "[ -~]{0,7}", kind in 0..6, layers in layers(),
    ) {
        let whole = format!("{before}{secret}{after}");
        let core = match kind {
            0 => STANDARD.encode(whole),
            1 => URL_SAFE_NO_PAD.encode(whole),
            2 => hex(&whole),
            3 => hex(&whole).to_uppercase(),
            4 => format!("{:?}", whole.as_bytes()),
            _ => STANDARD_NO_PAD.encode(quoted(&whole)),
        };
        let encoded = layers.iter().fold(core.clone(), |text, layer| layer.apply(&text));
        let redacted = redacted(&format!("<{encoded}>"), &secret);
        prop_assert!(redacted.contains(PLACEHOLDER), "{}", encoded);
        prop_assert!(redacted.starts_with('<') && redacted.ends_with('>'), "{}", redacted);
        // At most 16 bytes around the secret remain, of at most five characters each ("255, "). The
        // layers escape one character at a time, and some characters more than others.
        let escaped = |c: char| layers.iter().fold(c.to_string(), |text, layer| layer.apply(&text)).len();
        let longest = core.chars().map(escaped).max().unwrap_or(1);
        prop_assert!(redacted.len() < 80 * longest + 40, "{} of {}", redacted, encoded);
    }

    #[test]
    fn other_texts_are_unchanged(text in r"([%\\,+ ]|\\u|\\x|u\{|[0-9a-fA-F]|\PC){0,80}") {
        let redaction = redaction(["a-secret-with-$$-in-it", "\u{7}\u{7}\u{7}-another-one"]);
        prop_assert_eq!(redaction.redacted(&text), None);
    }
}
