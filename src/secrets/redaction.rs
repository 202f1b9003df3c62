//! Taking secrets out of text that leaves the server.
//!
//! A tool's errors are other people's: an HTTP client quotes the URL with the key in it, an API
//! repeats the token that it refuses. What a call was given as secret does not leave in them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::zeroize::Zeroizing;

use crate::Secret;

/// Shorter ones stand in ordinary words by chance; they are no secrets that matter, and
/// answers should stay readable.
const SHORTEST: usize = 8;

const PLACEHOLDER: &str = "[secret]";

/// RFC 3986, 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The text without the secrets, whether they stand in it as they are, as in a URL or as in JSON.
pub(crate) fn redacted<'a>(text: &str, secrets: impl IntoIterator<Item = &'a Secret>) -> String {
    let forms = secrets.into_iter().flat_map(forms_of);
    let mut forms: Vec<_> = forms.filter(|form| form.len() >= SHORTEST).collect();
    // One secret may stand in another, and would leave the rest of it behind.
    forms.sort_unstable_by_key(|form| std::cmp::Reverse(form.len()));
    let mut text = text.to_owned();
    for form in forms {
        if text.contains(&*form) {
            text = text.replace(&*form, PLACEHOLDER);
        }
    }
    text
}

fn forms_of(secret: &Secret) -> [Zeroizing<String>; 4] {
    let value = secret.expose();
    let json = serde_json::Value::from(value).to_string();
    [
        value.to_owned(),
        value.trim().to_owned(),
        json[1..json.len() - 1].to_owned(),
        utf8_percent_encode(value, RESERVED).to_string(),
    ]
    .map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_every_form_it_may_have() {
        let secret = Secret::from("top \"secret\"\n");
        for text in [
            "it is top \"secret\"\n!",
            "it is top \"secret\"",
            r#"{"key": "top \"secret\"\n"}"#,
            "https://a.example/?key=top%20%22secret%22%0A",
        ] {
            let redacted = redacted(text, [&secret]);
            assert!(redacted.contains(PLACEHOLDER), "{redacted}");
            assert!(!redacted.contains("top"), "{redacted}");
        }
    }

    #[test]
    fn a_secret_in_another_does_not_save_the_rest_of_it() {
        let host = Secret::from("db.example.com");
        let url = Secret::from("postgres://u:password@db.example.com/x");
        let text = format!("no connection to {}", url.expose());
        for secrets in [[&host, &url], [&url, &host]] {
            assert_eq!(redacted(&text, secrets), "no connection to [secret]");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        let secrets = [
            Secret::from("to"),
            Secret::from(""),
            Secret::from("other-key"),
        ];
        assert_eq!(redacted("go to it", &secrets), "go to it");
    }
}
