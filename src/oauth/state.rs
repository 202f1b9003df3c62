//! What goes round through the browser: `state`, its cookie, and the PKCE verifier.
//!
//! Nothing of it is stored. The state is signed over the cookie's value, so it means something in
//! one browser only; the verifier is made of the same value, so a code means something there only.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, header::COOKIE};

use super::keys::EncryptionKeys;

const STATE: &str = "state";
const VERIFIER: &str = "verifier";
const QUESTION: &str = "question";

/// A challenge in a browser.
pub(super) struct OAuthState {
    pub(super) state: String,
    /// RFC 7636: 43 characters.
    pub(super) verifier: String,
}

impl OAuthState {
    /// Begins one.
    pub(super) fn begin(
        keys: &EncryptionKeys,
        binding: &StateBinding<'_>,
        until: SystemTime,
        salt: &str,
    ) -> Self {
        // Each of several has a state and a verifier of its own.
        let until = format!("{}-{salt}", seconds(until));
        let tag = keys.sign(STATE, &binding.signed(&until));
        Self {
            state: format!("{}.{until}.{tag}", binding.challenge),
            verifier: keys.sign(VERIFIER, &binding.signed(&until)),
        }
    }

    /// The verifier of a journey that comes back, if it is one of ours, in time.
    pub(super) fn verifier_of(
        keys: &EncryptionKeys,
        binding: &StateBinding<'_>,
        until: &str,
        tag: &str,
        now: SystemTime,
    ) -> Option<String> {
        let signer = keys.signer(STATE, &binding.signed(until), tag)?;
        let (ends, _) = until.split_once('-')?;
        let ends = UNIX_EPOCH.checked_add(Duration::from_secs(ends.parse().ok()?))?;
        (now < ends).then(|| keys.sign_as(signer, VERIFIER, &binding.signed(until)))
    }
}

/// What a state is signed over.
pub(super) struct StateBinding<'a> {
    pub(super) challenge: &'a str,
    pub(super) provider: &'a str,
    /// The cookie's value.
    pub(super) browser: &'a str,
}

impl<'a> StateBinding<'a> {
    fn signed<'b>(&'b self, until: &'b str) -> [&'b str; 4]
    where
        'a: 'b,
    {
        [self.challenge, self.provider, self.browser, until]
    }

    /// What the form of the page sends back: other sites know it for none of their visitors.
    pub(super) fn form(&self, keys: &EncryptionKeys) -> String {
        keys.sign(QUESTION, &[self.challenge, self.provider, self.browser])
    }

    /// Whether the page with this form was shown in this browser, for this challenge.
    pub(super) fn was_asked(&self, keys: &EncryptionKeys, form: &str) -> bool {
        let parts = [self.challenge, self.provider, self.browser];
        keys.signer(QUESTION, &parts, form).is_some()
    }
}

/// The three parts of a state: the challenge's id, its end with what makes it unique, its signature.
pub(super) fn parts_of(state: &str) -> Option<(&str, &str, &str)> {
    let (challenge, rest) = state.split_once('.')?;
    let (until, tag) = rest.split_once('.')?;
    Some((challenge, until, tag))
}

/// The name of a challenge's cookie: several challenges can be answered side by side.
pub(super) fn cookie_name(challenge: &str, is_https: bool) -> String {
    let id = challenge.get(..16).unwrap_or_default();
    // RFC 6265bis, 4.1.3.2: no other host can set a cookie with this prefix.
    let prefix = if is_https { "__Host-" } else { "" };
    format!("{prefix}authorization-{id}")
}

/// What sets a challenge's cookie. Lax: it comes along on the way back from the provider, and with
/// no form of another site.
pub(super) fn cookie(name: &str, value: &str, life: Duration, is_https: bool) -> String {
    let (life, secure) = (life.as_secs(), if is_https { "; Secure" } else { "" });
    format!("{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Lax{secure}")
}

/// The value of a cookie, if it looks like one of ours.
pub(super) fn cookie_in<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).iter();
    let pairs = all
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(';'));
    let mut values = pairs.filter_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    });
    let value = values.next()?;
    let is_ours = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_ours.then_some(value)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_good_for_its_time_browser_provider_and_challenge() {
        let keys = EncryptionKeys::of("a-key-of-this-server-0123456789abcdef");
        let now = UNIX_EPOCH + Duration::from_hours(471_252);
        let binding = StateBinding {
            challenge: "c",
            provider: "google",
            browser: "b",
        };
        let state = OAuthState::begin(&keys, &binding, now + Duration::from_mins(10), "salt");
        let (_, until, tag) = parts_of(&state.state).unwrap();
        let comes_back = |keys: &EncryptionKeys, binding: StateBinding<'_>, seconds: u64| {
            OAuthState::verifier_of(
                keys,
                &binding,
                until,
                tag,
                now + Duration::from_secs(seconds),
            )
        };
        assert_eq!(
            comes_back(&keys, binding, 599).as_ref(),
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
            assert_eq!(comes_back(&keys, binding, seconds), None);
        }
        let others = EncryptionKeys::of("another-key-of-this-server-0123456789");
        assert_eq!(comes_back(&others, other("c", "google", "b"), 0), None);
    }

    #[test]
    fn a_form_is_good_in_its_browser_for_its_challenge_and_provider() {
        let (old, new) = (
            "an-old-key-of-this-server-0123456789",
            "a-new-key-of-this-server-0123456789",
        );
        let binding = |challenge, provider, browser| StateBinding {
            challenge,
            provider,
            browser,
        };
        let form = binding("c", "google", "b").form(&EncryptionKeys::of(old));
        let rotated = EncryptionKeys::of_all([new, old]);
        assert!(binding("c", "google", "b").was_asked(&rotated, &form));
        for other in [
            binding("d", "google", "b"),
            binding("c", "github", "b"),
            binding("c", "google", "a"),
        ] {
            assert!(!other.was_asked(&rotated, &form));
        }
        assert!(!binding("c", "google", "b").was_asked(&EncryptionKeys::of(new), &form));
        // Nor is it anything else.
        let verifier = EncryptionKeys::of(old).sign(VERIFIER, &["c", "google", "b"]);
        assert!(!binding("c", "google", "b").was_asked(&rotated, &verifier));
    }
}
