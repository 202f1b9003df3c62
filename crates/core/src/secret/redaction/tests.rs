//! Tests with secrets in the encodings that `docs/secrets.md` promises to find.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use url::form_urlencoded::byte_serialize;

use super::*;

fn redaction<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Redaction {
    let secrets = secrets.into_iter();
    Redaction::with_placeholders(secrets.map(|secret| (secret, PLACEHOLDER)), SHORTEST)
}

fn redacted(text: &str, secret: &str) -> String {
    let redacted = redaction([secret]).redacted(text);
    redacted.unwrap_or_else(|| text.to_owned())
}

fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

/// One secret as Python's `json`, `urllib.parse` and `base64` write them.
#[test]
fn a_secret_is_redacted_in_every_encoding() {
    let secret = "k3y/+= \"\\é~*-._!";
    for (before, encoded, after) in [
        ("", "k3y/+= \"\\é~*-._!", ""),
        ("", "k3y/+= \\\"\\\\é~*-._!", ""),
        ("", "k3y/+= \\\\\\\"\\\\\\\\é~*-._!", ""),
        ("", "k3y%2F%2B%3D%20%22%5C%C3%A9~%2A-._%21", ""),
        ("", "k3y%2f%2b%3d%20%22%5c%c3%a9~%2a-._%21", ""),
        ("", "k3y%2F%2B%3D%20%22%5C%C3%A9%7E%2A%2D%2E%5F%21", ""),
        ("", "k3y%2f%2b%3d%20%22%5c%c3%a9%7e%2a%2d%2e%5f%21", ""),
        ("", "k3y%2F%2B%3D+%22%5C%C3%A9%7E*-._%21", ""),
        ("", "k3y%2f%2b%3d+%22%5c%c3%a9%7e*-._%21", ""),
        ("", "6b33792f2b3d20225cc3a97e2a2d2e5f21", ""),
        ("", "6B33792F2B3D20225CC3A97E2A2D2E5F21", ""),
        ("", "azN5Lys9ICJcw6l+Ki0uXy", "E="),
        ("", "azN5Lys9ICJcw6l-Ki0uXy", "E="),
        ("dW", "szeS8rPSAiXMOpfiotLl8h", ""),
        ("dXN", "rM3kvKz0gIlzDqX4qLS5fI", "Q=="),
    ] {
        for (outer, end) in [("", ""), ("key=", "&x=1"), ("é\"", "\"\né")] {
            let text = format!("{outer}{before}{encoded}{after}{end}");
            let expected = format!("{outer}{before}[secret]{after}{end}");
            assert_eq!(redacted(&text, secret), expected, "{text}");
        }
    }
    let control = "a-key-\n\u{7f}-\u{1}";
    for quoted in [format!("{control:?}"), Value::from(control).to_string()] {
        assert_eq!(redacted(&quoted, control), "\"[secret]\"");
    }
}

/// The sets of the URL standard, of RFC 3986 and of encoders: each escapes other characters.
const ESCAPED: &str = r##"[
    "`", "#", "#'", "#?`{}", "#?^`{}", "#?`{}/%", "#?`{}/%\\", "#?^`{}/:;=@[\\]|", "#?^`{}/:;=@[\\]|$%&+,",
    "%[\\]^`{|}", "#?^`{}:;=@[\\]|$%&+,!'", "#?^`{}/:;=@[\\]|$%&+,!'"
]"##;

#[test]
fn a_secret_is_redacted_in_every_place_of_a_url() {
    let secret = "a/b+c d?e#f:g@h%i'j^k|l{m}n\"o<p>q[r]s\\t;u=v&w`x,y$z!";
    let controls = " \"<>";
    let sets: Vec<String> = serde_json::from_str(ESCAPED).unwrap();
    for escaped in &sets {
        let encoded = |lower: bool| {
            let characters = secret.chars().map(|it| {
                if !controls.contains(it) && !escaped.contains(it) {
                    it.to_string()
                } else if lower {
                    format!("%{:02x}", it as u32)
                } else {
                    format!("%{:02X}", it as u32)
                }
            });
            characters.collect::<String>()
        };
        for encoded in [encoded(false), encoded(true)] {
            let text = format!("https://x.example/{encoded}/100%!");
            let expected = "https://x.example/[secret]/100%!";
            assert_eq!(redacted(&text, secret), expected, "{escaped}");
        }
    }
    let mut url = url::Url::parse("https://x.example/a").unwrap();
    url.set_password(Some(secret)).unwrap();
    url.path_segments_mut().unwrap().push(secret).push("b");
    url.query_pairs_mut().append_pair("key", secret);
    url.set_fragment(Some(secret));
    let expected = "https://:[secret]@x.example/a/[secret]/b?key=[secret]#[secret]";
    assert_eq!(redacted(url.as_str(), secret), expected);
}

/// A text that is cut before it is redacted has the start of a secret at its end.
#[test]
fn the_start_of_a_secret_before_a_cut_is_redacted() {
    let secret = "Correct horse/\"staple\"";
    for whole in [
        secret.to_owned(),
        quoted(secret),
        "Correct%20horse%2F%22staple%22".to_owned(),
        STANDARD.encode(secret).trim_end_matches('=').to_owned(),
    ] {
        for shown in 4..whole.len() - 2 {
            for after in ["", " (and more)", "\": 1"] {
                let text = format!("it says {}…{after}", &whole[..shown]);
                let redacted = redacted(&text, secret);
                let start = redacted.strip_prefix("it says ").unwrap();
                let kept = start.split('…').next().unwrap();
                assert!(["[secret]", ""].contains(&kept), "{text}: {redacted}");
                assert!(redacted.ends_with(after), "{redacted}");
            }
        }
    }
    for text in "it says Correct horse|Cor…|Incorrect…|horse/…|…".split('|') {
        assert_eq!(redacted(text, secret), text);
    }
}

/// RFC 8259, 7: PHP escapes slashes, .NET plus signs, and others whatever they like.
#[test]
fn a_secret_is_redacted_with_any_escapes_of_json() {
    let secret = "ab/cd+ef12==🔑";
    for written in [
        r"ab\/cd+ef12==🔑",
        r"ab/cd\u002Bef12\u003d\u003D🔑",
        r"\u0061b\/cd\u002bef12==\ud83d\udd11",
    ] {
        for (before, after) in [("", ""), (r#"{"detail":"bad key "#, r#"\n"}"#)] {
            let text = format!("{before}{written}{after}");
            assert_eq!(redacted(&text, secret), format!("{before}[secret]{after}"));
        }
    }
}

/// A secret, a text, and the text without the secret.
const TEXTS: &str = r#"[
    ["subjects?act", "c3ViamVjdHM_YWN0", "[secret]"],
    ["subjects?act", "c3ViamVjdHM_YWN0-", "[secret]-"],
    ["a/b+c d?e", "%61%2fb+c%20d%3Fe", "[secret]"],
    ["a/b+c d?e", "é%C3%A9%zz%4", "é%C3%A9%zz%4"],
    ["ab/cd+ef12==🔑", "?next=%2Fx%3Fkey%3Dab%252Fcd%252Bef12%253D%253D%25F0%259F%2594%2591", "?next=%2Fx%3Fkey%3D[secret]"],
    ["sk-live-12345678", "invalid key sk-live-123… for account foo…", "invalid key [secret]… for account foo…"],
    ["top \"secret\"\n", "it is top \"secret\"\n!", "it is [secret]!"],
    ["top \"secret\"\n", "it is top \"secret\"", "it is [secret]"],
    ["top \"secret\"\n", "{\"key\": \"top \\\"secret\\\"\\n\"}", "{\"key\": \"[secret]\"}"]
]"#;

/// In base64 for URLs, in the query of a URL in another's query, before each mark of a cut, and
/// without the space around it.
#[test]
fn a_secret_is_redacted_in_context() {
    let rows: Vec<[String; 3]> = serde_json::from_str(TEXTS).unwrap();
    for [secret, text, expected] in &rows {
        assert_eq!(redacted(text, secret), *expected);
    }
}

/// Secrets, each with its parts.
const PARTS: &str = r#"[
    ["AC0123456789abcdef0123456789abcdef:token-0123456789abcdef:+15005550006",
        ["AC0123456789abcdef0123456789abcdef", "token-0123456789abcdef", "+15005550006"]],
    ["postgres://admin:hunter2-hunter2@db.internal.example/prod?sslmode=require",
        ["hunter2-hunter2", "db.internal.example"]],
    ["postgres://u:p%40ssw0rd@db.example/x", ["p%40ssw0rd", "p@ssw0rd"]],
    ["https://hooks.example/services/T0/xyz0123456789", ["xyz0123456789"]],
    ["-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n/+8wVVBGmnr2\n-----END KEY-----",
        ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "/+8wVVBGmnr2"]],
    ["{\"user\": \"services\", \"password\": \"not \\\"that\\\"\", \"keys\": [\"key\\nMIIEvQIBADAN\", 1234567890]}",
        ["not \"that\"", "MIIEvQIBADAN", "1234567890"]]
]"#;

#[test]
fn the_parts_of_a_secret_are_redacted() {
    let rows: Vec<(String, Vec<String>)> = serde_json::from_str(PARTS).unwrap();
    for (secret, parts) in &rows {
        assert_eq!(redacted(&format!("<{secret}>\n"), secret), "<[secret]>\n");
        for part in parts {
            let in_a_form: String = byte_serialize(part.as_bytes()).collect();
            for text in [part.clone(), quoted(part), in_a_form] {
                let redacted = redacted(&format!("<{text}>"), secret);
                assert_eq!(redacted, "<[secret]>", "{text}");
            }
        }
        let ordinary = "postgres services require user password example.com";
        assert_eq!(redacted(ordinary, secret), ordinary);
    }
}

#[test]
fn overlapping_secrets_are_redacted_together() {
    let host = "db.example.com";
    let url = "postgres://u:password@db.example.com";
    for secrets in [[host, url], [url, host]] {
        let redacted = redaction(secrets).redacted(&format!("no connection to {url}"));
        assert_eq!(redacted.unwrap(), "no connection to [secret]");
    }
    // None contains another.
    let secrets = ["first-second", "second-third", "third-fourth"];
    let redacted = redaction(secrets).redacted("<first-second-third-fourth>first-second");
    assert_eq!(redacted.unwrap(), "<[secret]>[secret]");
}

#[test]
fn the_placeholder_of_the_longest_secret_is_used() {
    let secrets = [("short!", "A"), ("a-short!", "B"), ("short!-one-b", "C")];
    let redaction = Redaction::with_placeholders(secrets, SHORTEST_TO_RECORD);
    let redacted = redaction.redacted("short! a-short! a-short!-one-b short!");
    assert_eq!(redacted.unwrap(), "A B C A");
}

#[test]
fn text_without_secrets_is_unchanged() {
    let symbols = "p@ss w0rd/+=&?#%\"\\'~!";
    let redaction = redaction(["to", "", "other-key", " short \n", symbols]);
    let texts = r"|go to it|short|other keys|100% of \n %zz %4 \u00 \x4 \|https://a.example/?a=1+2&b=%20%25|dXNlcjpwYXNzd29yZA==|é🔑ß";
    for text in texts.split('|') {
        assert_eq!(redaction.redacted(text), None, "{text}");
    }
}

/// Returns the processor time of this thread, which does not depend on other tests; without Linux,
/// the time.
fn thread_time() -> Duration {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let elapsed = STARTED.elapsed();
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat");
    schedule.map_or(elapsed, |text| {
        let nanoseconds = text.split(' ').next().unwrap().parse().unwrap();
        Duration::from_nanos(nanoseconds)
    })
}

#[test]
fn the_time_is_linear_in_the_text() {
    // Each text ends an encoded secret, or nearly one, at every position.
    let secret = "\\".repeat(1000);
    let parts: Vec<_> = (8..100).map(|length| "a".repeat(length)).collect();
    let redaction = redaction([&*secret, &*parts.join(":"), "%25%25%25%25", "%%%%%%%%%%"]);
    for piece in ["\\", "a", "%25", "%", "aaaaaaaaaaaaaaaab", "XFxcXFxc"] {
        let [short, long] = [1_000_000, 10_000_000].map(|length| {
            let text = piece.repeat(length / piece.len());
            let started = thread_time();
            let redacted = redaction.redacted(&text);
            assert!(redacted.is_some(), "{piece}");
            thread_time().saturating_sub(started)
        });
        assert!(long < short * 30, "{piece}: {short:?}, {long:?}");
    }
}

#[test]
fn large_secrets_take_little_memory_and_are_redacted_as_they_are() {
    let secret = |number: usize| format!("{number:03}-{}", "k!".repeat(2_500));
    let secrets: Vec<_> = (0..40).map(secret).collect();
    let redaction = redaction(secrets.iter().map(String::as_str));
    let memory = redaction.automaton.memory_usage();
    assert!(memory < 6 << 20, "{memory}");
    for secret in &secrets {
        let redacted = redaction.redacted(secret);
        assert_eq!(redacted.as_deref(), Some(PLACEHOLDER));
    }
}
