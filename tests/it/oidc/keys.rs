//! The cache of an issuer's keys: rotation, outages, and responses that are not keys.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use test_support::{assert_program, issuer::Behaviour, program};

use super::*;

const HOUR: Duration = Duration::from_hours(1);

/// An issuer, and a function that accepts its tokens.
struct Setup {
    issuer: Issuer,
    function: LambdaFunction,
    /// Claims that are valid for days, because these tests advance the clock.
    claims: Value,
    /// A token with them.
    valid: String,
}

impl Setup {
    async fn start() -> Self {
        let issuer = Issuer::start().await;
        let mut claims = claims(&issuer.url);
        claims["exp"] = (NOW + 1_000_000).into();
        Self {
            function: served(Oidc::issuer(&issuer.url)),
            valid: issuer.token(&claims),
            issuer,
            claims,
        }
    }

    /// Starts with keys that the function has fetched.
    async fn with_keys() -> Self {
        let setup = Self::start().await;
        assert_eq!(setup.status(&setup.valid).await, 200);
        setup
    }

    async fn status(&self, token: &str) -> u16 {
        status(&self.function, token).await
    }

    fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        self.issuer.change(change);
    }

    /// Returns a token whose header names this key, signed with another one.
    fn signed(&self, algorithm: &str, kid: &str) -> String {
        let header = json!({"alg": algorithm, "kid": kid});
        let key = self.issuer.key(Algorithm::ES256);
        key.sign_as(&header, &self.claims)
    }

    /// Lets the issuer add a key; returns it, and a token that it has signed.
    fn next(&self) -> (SigningKey, String) {
        let next = SigningKey::new("next", Algorithm::ES256);
        self.issuer.change(|it| it.keys.push(next.clone()));
        let token = next.sign(&self.claims);
        (next, token)
    }

    /// Checks that a call has to be sent again after this number of seconds.
    async fn assert_waits(&self, token: &str, seconds: &str) {
        let response = call(&self.function, "Who.AmI", token).await;
        assert_eq!(response.status, 400, "{response:?}");
        assert_eq!(response.headers["retry-after"], seconds, "{response:?}");
    }

    /// Sends a token to each protocol in turn, and returns the statuses.
    async fn statuses(&self, token: &str) -> [u16; 4] {
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let call = json!({"tool_id": "Who.AmI", "input": {}});
        let requests = [
            ("POST", "/mcp", &ping),
            ("POST", "/tools/call", &call),
            ("GET", "/tools", &Value::Null),
            ("GET", "/opentool/load", &Value::Null),
        ];
        let mut statuses = [0; 4];
        for ((method, path, body), status) in requests.into_iter().zip(&mut statuses) {
            let event = event(method, path, Some(token), body);
            let response = respond(&self.function, &event).await;
            *status = response.status;
            let waits = response.headers.contains_key("retry-after");
            assert_eq!(waits, ![200, 401].contains(status), "{response:?}");
        }
        statuses
    }
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_when_they_are_due() {
    for (cache_control, fresh, due) in [
        (None, 3599, 3600),
        (Some("public, max-age=7200"), 7199, 7200),
        (Some("max-age=1"), 299, 300),
        (Some("no-store"), 3599, 3600),
        (Some("max-age=31536000"), 12 * 3600 - 1, 12 * 3600),
    ] {
        let setup = Setup::start().await;
        setup.change(|it| it.cache_control = cache_control);
        for (pause, fetches) in [(0, 1), (0, 1), (fresh, 1), (due - fresh, 2)] {
            setup.function.advance(Duration::from_secs(pause));
            assert_eq!(setup.status(&setup.valid).await, 200);
            assert_eq!(setup.issuer.fetches(), fetches, "{cache_control:?} {pause}");
        }
    }
}

/// A new key is not rejected while it is being fetched.
#[tokio::test]
async fn no_call_fails_while_keys_rotate() {
    let setup = Setup::with_keys().await;
    let (_, new) = setup.next();
    setup.change(|it| it.delay = Duration::from_millis(20));
    let old = &setup.valid;
    let calls = (0..40).map(|n| setup.status(if n % 2 == 0 { old } else { &new }));
    assert_eq!(join_all(calls).await, [200; 40]);
    assert_eq!(setup.issuer.fetches(), 2);
    // The issuer withdraws the old key; the function forgets it when its keys are due.
    setup.change(|it| it.keys.retain(|key| key.kid == "next"));
    setup.function.advance(HOUR);
    assert_eq!(setup.status(&new).await, 200);
    assert_eq!(setup.status(old).await, 401);
}

/// In a program with two cryptography providers, `jsonwebtoken` panics unless one is installed.
#[test]
fn an_issuer_alone_installs_the_cryptography() {
    // In a process of its own, in which no other test has installed it.
    let mut program = program("oidc::keys::cryptography_program_of_tests");
    let output = program.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "a program that tests start"]
fn cryptography_program_of_tests() {
    assert_program();
    let _ = Oidc::issuer("https://idp.example");
    let provider = &jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER;
    assert!(provider.install_default().is_err());
}

#[tokio::test]
async fn unknown_keys_are_looked_up_at_most_once_a_minute() {
    let setup = Setup::with_keys().await;
    let function = &setup.function;
    assert_eq!(setup.status(&setup.signed("ES256", "made-up")).await, 401);
    let (next, new) = setup.next();
    // Until the next lookup, nobody knows whether the issuer has added the key.
    for n in 0..20 {
        let made_up = setup.signed("ES256", &format!("made-up-{n}"));
        setup.assert_waits(&made_up, "60").await;
    }
    setup.assert_waits(&new, "60").await;
    // Whoever signed an expired token, it is not valid. Clocks may differ by 60 seconds.
    let mut expiring = setup.claims.clone();
    expiring["exp"] = (NOW - 59).into();
    setup.assert_waits(&next.sign(&expiring), "60").await;
    expiring["exp"] = (NOW - 60).into();
    assert_eq!(setup.status(&next.sign(&expiring)).await, 401);
    function.advance(Duration::from_millis(58_500));
    setup.assert_waits(&new, "2").await;
    function.advance(Duration::from_millis(500));
    setup.assert_waits(&new, "1").await;
    assert_eq!(setup.issuer.fetches(), 2);
    function.advance(Duration::from_secs(1));
    assert_eq!(setup.status(&new).await, 200);
    assert_eq!(setup.issuer.fetches(), 3);
    assert_eq!(setup.status(&setup.valid).await, 200);
}

/// Alarms count statuses from 500 on, and a deployment that sets one off is rolled back. Whether a
/// token names a known key is up to its sender.
#[tokio::test]
async fn no_made_up_token_is_a_fault_of_the_server_that_has_keys() {
    for (status, delay) in [(200, 0), (503, 0), (429, 0), (302, 0), (200, 30)] {
        let setup = Setup::with_keys().await;
        let delay = Duration::from_secs(delay);
        setup.change(|it| (it.status, it.delay) = (status, delay));
        if !delay.is_zero() {
            // Nothing but the limit of a slow request ends it.
            tokio::time::pause();
        }
        // The only one about which the issuer has been asked, if it has answered.
        let is_answered = status == 200 && delay.is_zero();
        let seen = setup.statuses(&setup.signed("ES256", "first")).await;
        let expected = if is_answered { 401 } else { 429 };
        assert_eq!(seen[0], expected, "{status} {delay:?}");
        for (algorithm, kid, expected) in [
            ("ES256", "one", [429, 400, 400, 429]),
            ("RS256", "one", [429, 400, 400, 429]),
            ("HS256", "one", [429, 400, 400, 429]),
            ("none", "", [429, 400, 400, 429]),
            ("ES256", &"k".repeat(8_000), [429, 400, 400, 429]),
            ("ES256", "RS256", [401; 4]),
            ("ES256", &"k".repeat(16_000), [401; 4]),
        ] {
            let seen = setup.statuses(&setup.signed(algorithm, kid)).await;
            let size = kid.len();
            assert_eq!(seen, expected, "{status} {delay:?} {algorithm} {size}");
        }
        // Nobody who has a key of the issuer waits meanwhile.
        assert_eq!(setup.statuses(&setup.valid).await, [200; 4]);
    }
}

/// Each set of rules has its own keys: the rules that would accept the token wait for theirs.
#[tokio::test]
async fn a_token_is_not_rejected_while_one_set_of_rules_lacks_its_key() {
    let mut setup = Setup::start().await;
    let issuer = || Oidc::issuer(&setup.issuer.url);
    setup.function = served(Auth::from(issuer()).or(issuer().user_claim("name")));
    assert_eq!(setup.status(&setup.valid).await, 200);
    assert_eq!(setup.status(&setup.signed("ES256", "made-up")).await, 401);
    setup.claims["name"] = json!([]);
    let (_, new) = setup.next();
    assert_eq!(setup.status(&new).await, 400);
}

#[tokio::test]
async fn keys_at_a_url_that_the_metadata_no_longer_names_are_not_used() {
    let (setup, elsewhere) = (Setup::with_keys().await, Issuer::start().await);
    let next = SigningKey::new("next", Algorithm::ES256);
    elsewhere.change(|it| it.keys = vec![next.clone()]);
    let keys = format!("{}/keys", elsewhere.url);
    let metadata = json!({"issuer": setup.issuer.url, "jwks_uri": keys});
    setup.change(|it| it.metadata = Some(metadata));
    setup.function.advance(HOUR);
    assert_eq!(setup.status(&next.sign(&setup.claims)).await, 200);
    setup.function.advance(Duration::from_mins(1));
    assert_eq!(setup.status(&setup.valid).await, 401);
}

#[tokio::test]
async fn cached_keys_serve_through_an_outage_of_a_day() {
    let setup = Setup::with_keys().await;
    setup.change(|it| it.key_set = Some(b"<html>".to_vec()));
    setup.function.advance(2 * HOUR);
    for _ in 0..3 {
        assert_eq!(setup.status(&setup.valid).await, 200);
    }
    // One attempt, and then a pause.
    assert_eq!(setup.issuer.fetches(), 2);
    // A key that may have been added in the meantime is not known to be wrong.
    let new = setup.signed("ES256", "new");
    setup.assert_waits(&new, "60").await;
    setup.function.advance(22 * HOUR);
    setup.assert_waits(&setup.valid, "5").await;
    setup.change(|it| it.key_set = None);
    setup.function.advance(Duration::from_secs(5));
    assert_eq!(setup.status(&setup.valid).await, 200);
}

/// Without any key, nobody's token can be checked: that is the issuer's failure, or the server's.
#[tokio::test]
async fn without_keys_the_answer_is_clear_and_comes_in_time() {
    let public = SigningKey::new("oct", Algorithm::ES256).public();
    let symmetric = json!({"kty": "oct", "k": "AAAA", "kid": "RS256", "alg": "HS256"});
    let (mut encryption, mut large) = (public.clone(), public);
    encryption["use"] = "enc".into();
    large["x5c"] = json!(["A".repeat(1 << 20)]);
    let set = |key: &Value| json!({"keys": [key]}).to_string();
    for set in [
        "<html>".to_owned(),
        "[]".to_owned(),
        r#"{"keys": []}"#.to_owned(),
        r#"{"keys": {}}"#.to_owned(),
        set(&symmetric),
        set(&encryption),
        set(&large),
        "[".repeat(200_000) + &"]".repeat(200_000),
    ] {
        let setup = Setup::start().await;
        let start = set[..set.len().min(30)].to_owned();
        setup.change(|it| it.key_set = Some(set.into_bytes()));
        assert_unavailable(&start, &setup).await;
    }
    let elsewhere = "http://127.0.0.1:1";
    for (named, keys) in [
        // A document of another issuer, with the same keys.
        (elsewhere, "OWN/keys"),
        ("", "OWN/keys"),
        ("OWN", ""),
        ("OWN", "http://keys.example/keys"),
        // It answers, but is not spelled as this machine.
        ("OWN", "MAPPED/keys"),
        ("OWN", "keys"),
        ("OWN", elsewhere),
    ] {
        let setup = Setup::start().await;
        let own = &setup.issuer.url;
        let mapped = own.replace("127.0.0.1", "[::ffff:127.0.0.1]");
        let [issuer, jwks_uri] =
            [named, keys].map(|it| it.replace("OWN", own).replace("MAPPED", &mapped));
        let metadata = json!({"issuer": issuer, "jwks_uri": jwks_uri});
        setup.change(|it| it.metadata = Some(metadata));
        assert_unavailable(&format!("{named} {keys}"), &setup).await;
    }
    for status in [302, 401, 404, 500] {
        let setup = Setup::start().await;
        setup.change(|it| it.status = status);
        assert_unavailable(&status.to_string(), &setup).await;
    }
}

/// Checks that everyone with a token that may be the issuer's has to wait, and nobody else.
async fn assert_unavailable(name: &str, setup: &Setup) {
    let begun = Instant::now();
    let response = call(&setup.function, "Who.AmI", &setup.valid).await;
    assert_eq!(response.headers["retry-after"], "5", "{name}");
    let text = response.body.to_string();
    let says_why = text.contains("cannot check the credentials");
    assert!(says_why, "{name}: {text}");
    for token in [&setup.valid, &setup.signed("ES256", "made-up")] {
        assert_eq!(setup.statuses(token).await, [503, 400, 400, 503], "{name}");
    }
    let elsewhere = json!({"iss": "https://elsewhere.example"});
    for changes in [elsewhere, json!({"exp": NOW - 60})] {
        let token = setup.issuer.token_with(&changes);
        assert_eq!(setup.statuses(&token).await, [401; 4], "{name} {changes}");
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{name}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_issuer_costs_seconds_at_most() {
    let setup = Setup::start().await;
    setup.change(|it| it.delay = Duration::from_secs(30));
    let begun = tokio::time::Instant::now();
    assert_eq!(setup.status(&setup.valid).await, 400);
    let elapsed = begun.elapsed();
    assert!(elapsed < Duration::from_secs(7), "{elapsed:?}");
    // Until the pause is over, calls do not wait.
    assert_eq!(setup.status(&setup.valid).await, 400);
    assert_eq!(begun.elapsed(), elapsed);
}

#[tokio::test]
async fn a_slow_issuer_does_not_hold_up_calls_that_have_keys() {
    let setup = Setup::with_keys().await;
    setup.change(|it| it.delay = Duration::from_secs(30));
    setup.function.advance(2 * HOUR);
    let begun = Instant::now();
    let calls = (0..10).map(|_| setup.status(&setup.valid));
    assert_eq!(join_all(calls).await, [200; 10]);
    let elapsed = begun.elapsed();
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
}

/// RFC 8414, section 3.1: the well-known path comes before the path of the issuer.
#[tokio::test]
async fn metadata_is_also_found_at_the_path_of_rfc_8414() {
    let issuer = Issuer::start_at("/tenant", None).await;
    for path in [
        "/tenant/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/tenant",
    ] {
        issuer.change(|it| it.metadata_path = path.to_owned());
        let function = served(Oidc::issuer(&issuer.url));
        assert_eq!(status(&function, &issuer.valid()).await, 200, "{path}");
    }
}

/// RFC 7517, 4, and RFC 8725, 3.1: a key is used for nothing but what it says.
#[tokio::test]
async fn a_key_is_used_only_for_what_it_says() {
    use Algorithm::{ES256, EdDSA, PS256, RS256};

    // Azure's keys have no `alg`, and are used with RS256.
    let bare = || json!({"alg": null, "use": null});
    for (algorithm, changes, expected) in [
        (ES256, json!({}), 200),
        (ES256, json!({"key_ops": ["sign", "verify"]}), 200),
        (RS256, bare(), 200),
        (ES256, bare(), 200),
        (EdDSA, bare(), 200),
        (PS256, bare(), 401),
        // Without any other key, nothing can be checked.
        (ES256, json!({"key_ops": ["sign"]}), 400),
        (ES256, json!({"use": "enc"}), 400),
        (ES256, json!({"use": "sig", "key_ops": ["encrypt"]}), 400),
        (ES256, json!({"alg": "ES384"}), 400),
        (ES256, json!({"crv": "secp256k1"}), 400),
        (RS256, json!({"alg": "HS256"}), 400),
        // The key is for another algorithm than the token's.
        (RS256, json!({"alg": "PS256"}), 401),
        (ES256, json!({"kid": "other"}), 401),
        (ES256, json!({"kid": null}), 401),
        // An id is not a part of another one.
        (ES256, json!({"kid": "ES25"}), 401),
        (ES256, json!({"kid": "es256"}), 401),
    ] {
        let setup = Setup::start().await;
        let key = setup.issuer.key(algorithm);
        let mut public = key.public();
        for (name, value) in changes.as_object().unwrap() {
            public[name] = value.clone();
        }
        let set = json!({"keys": [public]}).to_string().into_bytes();
        setup.change(|it| it.key_set = Some(set));
        let seen = setup.status(&key.sign(&setup.claims)).await;
        assert_eq!(seen, expected, "{algorithm:?} {changes}");
    }
}

/// A token without `kid` is tried with a few keys, and an issuer has at most a hundred.
#[tokio::test]
async fn the_number_of_keys_is_limited() {
    let issuer = Issuer::start().await;
    let own = issuer.key(Algorithm::ES256);
    let other = SigningKey::new("x", Algorithm::ES256).public();
    let claims = claims(&issuer.url);
    let without_id = own.sign_as(&json!({"alg": "ES256"}), &claims);
    let with_id = own.sign(&claims);
    for (token, before, expected) in [
        (&without_id, 0, 200),
        (&without_id, 7, 200),
        (&without_id, 8, 401),
        (&with_id, 99, 200),
        (&with_id, 100, 401),
    ] {
        let keys = std::iter::repeat_n(other.clone(), before).chain([own.public()]);
        let set = json!({"keys": keys.collect::<Vec<_>>()}).to_string();
        issuer.change(|it| it.key_set = Some(set.into_bytes()));
        let seen = status(&served(Oidc::issuer(&issuer.url)), token).await;
        assert_eq!(seen, expected, "{before}");
    }
}

/// An issuer may configure its URL with a trailing slash, and an owner may leave it out.
#[tokio::test]
async fn a_trailing_slash_of_the_configured_issuer_does_not_matter() {
    let issuer = Issuer::start().await;
    let spelled = format!("{}/", issuer.url);
    let metadata = json!({"issuer": spelled, "jwks_uri": format!("{}/keys", issuer.url)});
    issuer.change(|it| it.metadata = Some(metadata));
    for configured in [&issuer.url, &spelled] {
        let function = served(Oidc::issuer(configured));
        for (named, expected) in [(&spelled, 200), (&issuer.url, 401)] {
            let seen = status(&function, &issuer.token(&claims(named))).await;
            assert_eq!(seen, expected, "{configured} {named}");
        }
    }
}
