//! The values bound to a browser: `state`, its cookie, and the PKCE verifier.
//!
//! None of them is stored on the server. The signature of `state` covers the cookie's value, so
//! `state` is valid in one browser only; the verifier is derived from the same value, so a code can
//! be exchanged only there.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, header::COOKIE};

use super::keys::EncryptionKeys;
use crate::clock::since_epoch;

// The purposes of the derived keys.
const STATE: &str = "state";
const VERIFIER: &str = "verifier";
const CONSENT_FORM: &str = "question";

/// A challenge's `state` and PKCE verifier in one browser.
pub(super) struct OAuthState {
    pub(super) state: String,
    /// RFC 7636: 43 characters.
    pub(super) verifier: String,
}

impl OAuthState {
    pub(super) fn new(
        keys: &EncryptionKeys,
        binding: &StateBinding<'_>,
        expires_at: SystemTime,
        salt: &str,
    ) -> Self {
        // The salt makes each state and verifier unique.
        let expiry = format!("{}-{salt}", since_epoch(expires_at).as_secs());
        let tag = keys.sign(STATE, &binding.signed_parts(&expiry));
        Self {
            state: format!("{}.{expiry}.{tag}", binding.challenge),
            verifier: keys.sign(VERIFIER, &binding.signed_parts(&expiry)),
        }
    }

    /// Returns the verifier of a returned state, if its signature is valid and it has not expired.
    pub(super) fn verifier_of(
        keys: &EncryptionKeys,
        binding: &StateBinding<'_>,
        expiry: &str,
        tag: &str,
        now: SystemTime,
    ) -> Option<String> {
        let signer = keys.signer(STATE, &binding.signed_parts(expiry), tag)?;
        let (expires_at, _) = expiry.split_once('-')?;
        let expires_at = Duration::from_secs(expires_at.parse().ok()?);
        let expires_at = UNIX_EPOCH.checked_add(expires_at)?;
        (now < expires_at).then(|| keys.sign_as(signer, VERIFIER, &binding.signed_parts(expiry)))
    }
}

/// The values that the signature of a state covers.
pub(super) struct StateBinding<'a> {
    pub(super) challenge: &'a str,
    pub(super) provider: &'a str,
    /// The cookie's value.
    pub(super) browser: &'a str,
}

impl<'a> StateBinding<'a> {
    fn signed_parts<'b>(&'b self, expiry: &'b str) -> [&'b str; 4]
    where
        'a: 'b,
    {
        [self.challenge, self.provider, self.browser, expiry]
    }

    /// Returns the token that the consent page's form sends back. Other sites do not know it.
    pub(super) fn form_token(&self, keys: &EncryptionKeys) -> String {
        keys.sign(CONSENT_FORM, &[self.challenge, self.provider, self.browser])
    }

    /// Returns true if the consent page with this token was shown in this browser, for this
    /// challenge.
    pub(super) fn is_form_token(&self, keys: &EncryptionKeys, token: &str) -> bool {
        let parts = [self.challenge, self.provider, self.browser];
        keys.signer(CONSENT_FORM, &parts, token).is_some()
    }
}

/// Returns the parts of a state: the challenge's id, the expiry with its salt, and the signature.
pub(super) fn split_state(state: &str) -> Option<(&str, &str, &str)> {
    let (challenge, rest) = state.split_once('.')?;
    let (expiry, tag) = rest.split_once('.')?;
    Some((challenge, expiry, tag))
}

/// Returns the name of a challenge's cookie: unique, so that several challenges can be open at
/// once.
pub(super) fn cookie_name(challenge: &str, is_https: bool) -> String {
    let id = challenge.get(..16).unwrap_or_default();
    own_name(&format!("authorization-{id}"), is_https)
}

/// Returns the name of a cookie that no other host can set, because of its prefix: RFC 6265bis,
/// 4.1.3.2.
pub(crate) fn own_name(name: &str, is_https: bool) -> String {
    let prefix = if is_https { "__Host-" } else { "" };
    format!("{prefix}{name}")
}

/// Returns the `Set-Cookie` value of a challenge's cookie. With `SameSite=Lax`, browsers send it
/// with the provider's redirect, but not with another site's form.
pub(crate) fn cookie(name: &str, value: &str, life: Duration, is_https: bool) -> String {
    let (life, secure) = (life.as_secs(), if is_https { "; Secure" } else { "" });
    format!("{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Lax{secure}")
}

/// Returns the value that binds a browser, if it has the format that this server gives it.
pub(crate) fn cookie_in<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = cookie_value(headers, name)?;
    let is_valid = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_valid.then_some(value)
}

/// Returns the first value of a cookie. Those of other sites may have any bytes.
pub(crate) fn cookie_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).iter();
    let pairs = all.flat_map(|it| it.as_bytes().split(|byte| *byte == b';'));
    let mut values = pairs.filter_map(|pair| {
        // Only spaces of ASCII: to a browser, others are part of a name, which then needs no prefix.
        let pair = std::str::from_utf8(pair.trim_ascii()).ok()?;
        let (key, value) = pair.split_once('=')?;
        (key == name).then_some(value)
    });
    values.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_valid_for_its_time_browser_provider_and_challenge() {
        let keys = EncryptionKeys::of("a-key-of-this-server-0123456789abcdef");
        let now = UNIX_EPOCH + Duration::from_hours(471_252);
        let binding = StateBinding {
            challenge: "c",
            provider: "google",
            browser: "b",
        };
        let state = OAuthState::new(&keys, &binding, now + Duration::from_mins(10), "salt");
        let (_, expiry, tag) = split_state(&state.state).unwrap();
        let verifier = |keys: &EncryptionKeys, binding: StateBinding<'_>, seconds: u64| {
            OAuthState::verifier_of(
                keys,
                &binding,
                expiry,
                tag,
                now + Duration::from_secs(seconds),
            )
        };
        assert_eq!(
            verifier(&keys, binding, 599).as_ref(),
            Some(&state.verifier)
        );
        assert_eq!(state.verifier.len(), 43);
        let other = |challenge, provider, browser| StateBinding {
            challenge,
            provider,
            browser,
        };
        for (binding, seconds) in [
            (other("c", "google", "b"), 600),
            (other("d", "google", "b"), 0),
            (other("c", "github", "b"), 0),
            (other("c", "google", "a"), 0),
        ] {
            assert_eq!(verifier(&keys, binding, seconds), None);
        }
        let other_keys = EncryptionKeys::of("another-key-of-this-server-0123456789");
        assert_eq!(verifier(&other_keys, other("c", "google", "b"), 0), None);
    }

    #[test]
    fn a_cookie_is_found_among_those_of_other_sites() {
        const OWN: &[u8] = b"__Host-sign-in=own";
        let found = |lines: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(COOKIE, http::HeaderValue::from_bytes(line).unwrap());
            }
            cookie_value(&headers, "__Host-sign-in").map(str::to_owned)
        };
        let joined = |foreign: &[u8]| [foreign, b"; ", OWN, b";", foreign].concat();
        for foreign in [
            "a=b".as_bytes(),
            "__utmz=utmccn=Unders\u{f8}gelse".as_bytes(),
            b"y=\xe9",
            b"y=\xff\xfe\x80",
            "\u{e9}=1".as_bytes(),
            b"no-value",
            b"=",
            b"",
            "__Host-sign-in\u{e9}=x".as_bytes(),
            // A page of a neighbouring host can set it, because its name has no prefix.
            "\u{2000}__Host-sign-in=x".as_bytes(),
            "\u{a0}__Host-sign-in=x".as_bytes(),
            b"__host-sign-in=x",
        ] {
            // RFC 9113, 8.2.3: HTTP/2 may split the header.
            let joined = joined(foreign);
            let together: &[&[u8]] = &[&joined];
            for lines in [together, &[foreign, OWN], &[OWN, foreign]] {
                assert_eq!(found(lines).as_deref(), Some("own"), "{lines:?}");
            }
            assert_eq!(found(&[foreign]), None, "{foreign:?}");
        }
        assert_eq!(
            found(&[b"a=1;\t__Host-sign-in=own \t;b=2"]).as_deref(),
            Some("own")
        );
        assert_eq!(found(&[b"__Host-sign-in=\xe9"]), None);
    }

    #[test]
    fn a_form_token_is_valid_in_its_browser_for_its_challenge_and_provider() {
        let (old, new) = (
            "an-old-key-of-this-server-0123456789",
            "a-new-key-of-this-server-0123456789",
        );
        let binding = |challenge, provider, browser| StateBinding {
            challenge,
            provider,
            browser,
        };
        let token = binding("c", "google", "b").form_token(&EncryptionKeys::of(old));
        let rotated = EncryptionKeys::of_all([new, old]);
        assert!(binding("c", "google", "b").is_form_token(&rotated, &token));
        for other in [
            binding("d", "google", "b"),
            binding("c", "github", "b"),
            binding("c", "google", "a"),
        ] {
            assert!(!other.is_form_token(&rotated, &token));
        }
        assert!(!binding("c", "google", "b").is_form_token(&EncryptionKeys::of(new), &token));
        // A signature for another purpose is not a form token.
        let verifier = EncryptionKeys::of(old).sign(VERIFIER, &["c", "google", "b"]);
        assert!(!binding("c", "google", "b").is_form_token(&rotated, &verifier));
    }
}
