//! The cache of an issuer's keys: rotation, outages, and responses that are not keys.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use jsonwebtoken::Algorithm;
use lambda_tools::{Auth, Oidc, testing::LambdaFunction};
use serde_json::{Value, json};

use test_support::{
    assert_program,
    issuer::{Issuer, NOW, SigningKey, claims},
    program,
};

use super::{call, event, respond, served};

const HOUR: Duration = Duration::from_hours(1);

async fn status(function: &LambdaFunction, token: &str) -> u16 {
    call(function, "Who.AmI", token).await.status
}

/// Returns a token that is valid for days, because these tests advance the clock.
fn lasting(issuer: &Issuer) -> Value {
    let mut claims = claims(&issuer.url);
    claims["exp"] = (NOW + 1_000_000).into();
    claims
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
        let issuer = Issuer::start().await;
        issuer.change(|it| it.cache_control = cache_control);
        let function = served(Oidc::issuer(&issuer.url));
        let token = issuer.token(&lasting(&issuer));
        for _ in 0..3 {
            assert_eq!(status(&function, &token).await, 200);
        }
        assert_eq!(issuer.fetches(), 1);
        function.advance(Duration::from_secs(fresh));
        assert_eq!(status(&function, &token).await, 200);
        assert_eq!(issuer.fetches(), 1, "{cache_control:?}");
        function.advance(Duration::from_secs(due - fresh));
        assert_eq!(status(&function, &token).await, 200);
        assert_eq!(issuer.fetches(), 2, "{cache_control:?}");
    }
}

#[tokio::test]
async fn no_call_fails_while_keys_rotate() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url));
    let claims = lasting(&issuer);
    assert_eq!(status(&function, &issuer.token(&claims)).await, 200);
    let next = SigningKey::new("next", Algorithm::ES256);
    issuer.change(|it| {
        it.delay = Duration::from_millis(20);
        it.keys.push(next.clone());
    });
    let (old, new) = (issuer.token(&claims), next.sign(&claims));
    let calls = (0..40).map(|n| status(&function, if n % 2 == 0 { &old } else { &new }));
    assert_eq!(join_all(calls).await, [200; 40]);
    assert_eq!(issuer.fetches(), 2);
    // The issuer withdraws the old key; the function forgets it when its keys are due.
    issuer.change(|it| it.keys.retain(|key| key.kid == "next"));
    function.advance(HOUR);
    assert_eq!(status(&function, &new).await, 200);
    assert_eq!(status(&function, &old).await, 401);
}

/// A stranger with a made-up key id must not turn away the holders of tokens with a new key.
#[tokio::test]
async fn a_new_key_is_not_rejected_while_it_is_being_fetched() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url));
    let claims = lasting(&issuer);
    assert_eq!(status(&function, &issuer.token(&claims)).await, 200);
    let next = SigningKey::new("next", Algorithm::ES256);
    issuer.change(|it| {
        it.delay = Duration::from_millis(300);
        it.keys.push(next.clone());
    });
    let header = json!({"alg": "ES256", "kid": "made-up"});
    let stranger = next.sign_as(&header, &claims);
    let later = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        status(&function, &next.sign(&claims)).await
    };
    let statuses = tokio::join!(status(&function, &stranger), later);
    assert_eq!(statuses, (401, 200));
    assert_eq!(issuer.fetches(), 2);
}

/// In a program with two cryptography providers, `jsonwebtoken` panics unless one is installed.
#[test]
fn an_issuer_alone_installs_the_cryptography() {
    // In a process of its own, in which no other test has installed it.
    let output = program("oidc::keys::cryptography_program_of_tests")
        .output()
        .unwrap();
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
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url));
    let claims = lasting(&issuer);
    let valid = issuer.token(&claims);
    assert_eq!(status(&function, &valid).await, 200);
    let made_up = |n: usize| {
        let header = json!({"alg": "ES256", "kid": format!("made-up-{n}")});
        issuer.key(Algorithm::ES256).sign_as(&header, &claims)
    };
    assert_eq!(status(&function, &made_up(0)).await, 401);
    let next = SigningKey::new("next", Algorithm::ES256);
    issuer.change(|it| it.keys.push(next.clone()));
    let new = next.sign(&claims);
    let wait = async |token: &str, seconds: &str| {
        let response = call(&function, "Who.AmI", token).await;
        assert_eq!(response.status, 400, "{response:?}");
        assert_eq!(response.headers["retry-after"], seconds);
    };
    // Until the next lookup, nobody knows whether the issuer has added the key.
    for n in 0..20 {
        wait(&made_up(n), "60").await;
    }
    wait(&new, "60").await;
    // Whoever signed an expired token, it is not valid. Clocks may differ by 60 seconds.
    let mut expiring = claims.clone();
    expiring["exp"] = (NOW - 59).into();
    wait(&next.sign(&expiring), "60").await;
    expiring["exp"] = (NOW - 60).into();
    assert_eq!(status(&function, &next.sign(&expiring)).await, 401);
    function.advance(Duration::from_millis(58_500));
    wait(&new, "2").await;
    function.advance(Duration::from_millis(500));
    wait(&new, "1").await;
    assert_eq!(issuer.fetches(), 2);
    function.advance(Duration::from_secs(1));
    assert_eq!(status(&function, &new).await, 200);
    assert_eq!(issuer.fetches(), 3);
    assert_eq!(status(&function, &valid).await, 200);
}

/// Sends a token to each protocol in turn, and returns the statuses.
async fn statuses(function: &LambdaFunction, token: &str) -> [u16; 4] {
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
        let response = respond(function, &event(method, path, Some(token), body)).await;
        *status = response.status;
        let waits = response.headers.contains_key("retry-after");
        assert_eq!(waits, ![200, 401].contains(status), "{response:?}");
    }
    statuses
}

/// Alarms count statuses from 500 on, and a deployment that sets one off is rolled back. Whether a
/// token names a known key is up to its sender.
#[tokio::test]
async fn no_made_up_token_is_a_fault_of_the_server_that_has_keys() {
    for (status, delay) in [(200, 0), (503, 0), (429, 0), (302, 0), (200, 30)] {
        let issuer = Issuer::start().await;
        let function = served(Oidc::issuer(&issuer.url));
        let claims = lasting(&issuer);
        let valid = issuer.token(&claims);
        assert_eq!(statuses(&function, &valid).await, [200; 4]);
        issuer.change(|it| (it.status, it.delay) = (status, Duration::from_secs(delay)));
        if delay > 0 {
            // Nothing but the limit of a slow request ends it.
            tokio::time::pause();
        }
        let signed = |algorithm: &str, kid: &str| {
            let header = json!({"alg": algorithm, "kid": kid});
            issuer.key(Algorithm::ES256).sign_as(&header, &claims)
        };
        let mut seen = Vec::new();
        for n in 0..20 {
            let token = signed("ES256", &format!("made-up-{n}"));
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
            let event = event("POST", "/mcp", Some(&token), &body);
            seen.push(respond(&function, &event).await.status);
        }
        // The only one about which the issuer has been asked, if it has answered.
        let first = if status == 200 && delay == 0 {
            401
        } else {
            429
        };
        assert_eq!(
            seen,
            [&[first][..], &[429; 19]].concat(),
            "{status} {delay}"
        );
        for (algorithm, kid, expected) in [
            ("ES256", "one", [429, 400, 400, 429]),
            ("RS256", "one", [429, 400, 400, 429]),
            ("HS256", "one", [429, 400, 400, 429]),
            ("none", "", [429, 400, 400, 429]),
            ("ES256", &"k".repeat(8_000), [429, 400, 400, 429]),
            ("ES256", "RS256", [401; 4]),
            ("ES256", &"k".repeat(16_000), [401; 4]),
        ] {
            let answers = statuses(&function, &signed(algorithm, kid)).await;
            assert_eq!(
                answers,
                expected,
                "{status} {algorithm} {}",
                &kid[..kid.len().min(9)]
            );
        }
        // Nobody who has a key of the issuer waits meanwhile.
        assert_eq!(statuses(&function, &valid).await, [200; 4]);
    }
}

/// Without any key, nobody's token can be checked: that is the issuer's failure, or the server's.
#[tokio::test]
async fn every_token_waits_for_an_issuer_without_keys() {
    let issuer = Issuer::start().await;
    issuer.change(|it| it.status = 503);
    let function = served(Oidc::issuer(&issuer.url));
    let claims = lasting(&issuer);
    let made_up = json!({"alg": "ES256", "kid": "made-up"});
    let made_up = issuer.key(Algorithm::ES256).sign_as(&made_up, &claims);
    for token in [&issuer.token(&claims), &made_up] {
        assert_eq!(statuses(&function, token).await, [503, 400, 400, 503]);
    }
    let mut elsewhere = claims.clone();
    elsewhere["iss"] = "https://elsewhere.example".into();
    let mut expired = claims;
    expired["exp"] = (NOW - 60).into();
    for claims in [elsewhere, expired] {
        assert_eq!(statuses(&function, &issuer.token(&claims)).await, [401; 4]);
    }
}

/// Each set of rules has its own keys: the rules that would accept the token wait for theirs.
#[tokio::test]
async fn a_token_is_not_rejected_while_one_set_of_rules_lacks_its_key() {
    let issuer = Issuer::start().await;
    let by_name = Oidc::issuer(&issuer.url).user_claim("name");
    let auth = Auth::from(Oidc::issuer(&issuer.url)).or(by_name);
    let function = served(auth);
    let mut claims = lasting(&issuer);
    assert_eq!(status(&function, &issuer.token(&claims)).await, 200);
    let next = SigningKey::new("next", Algorithm::ES256);
    let made_up = next.sign_as(&json!({"alg": "ES256", "kid": "made-up"}), &claims);
    assert_eq!(status(&function, &made_up).await, 401);
    issuer.change(|it| it.keys.push(next.clone()));
    claims["name"] = json!([]);
    assert_eq!(status(&function, &next.sign(&claims)).await, 400);
}

#[tokio::test]
async fn keys_at_a_url_that_the_metadata_no_longer_names_are_not_used() {
    let (issuer, elsewhere) = (Issuer::start().await, Issuer::start().await);
    let function = served(Oidc::issuer(&issuer.url));
    let claims = lasting(&issuer);
    let old = issuer.token(&claims);
    assert_eq!(status(&function, &old).await, 200);
    let next = SigningKey::new("next", Algorithm::ES256);
    elsewhere.change(|it| it.keys = vec![next.clone()]);
    let metadata = json!({"issuer": issuer.url, "jwks_uri": format!("{}/keys", elsewhere.url)});
    issuer.change(|it| it.metadata = Some(metadata));
    function.advance(HOUR);
    assert_eq!(status(&function, &next.sign(&claims)).await, 200);
    function.advance(Duration::from_mins(1));
    assert_eq!(status(&function, &old).await, 401);
}

#[tokio::test]
async fn cached_keys_serve_through_an_outage_of_a_day() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url));
    let claims = lasting(&issuer);
    let token = issuer.token(&claims);
    assert_eq!(status(&function, &token).await, 200);
    issuer.change(|it| it.status = 503);
    function.advance(2 * HOUR);
    for _ in 0..3 {
        assert_eq!(status(&function, &token).await, 200);
    }
    // One attempt, and then a pause.
    assert_eq!(issuer.fetches(), 2, "together with the metadata");
    // A key that may have been added in the meantime is not known to be wrong.
    let header = json!({"alg": "ES256", "kid": "new"});
    let unknown = issuer.key(Algorithm::ES256).sign_as(&header, &claims);
    let response = call(&function, "Who.AmI", &unknown).await;
    assert_eq!(response.status, 400, "{response:?}");
    assert_eq!(response.headers["retry-after"], "60");
    function.advance(22 * HOUR);
    let response = call(&function, "Who.AmI", &token).await;
    assert_eq!(response.status, 400, "{response:?}");
    assert_eq!(response.headers["retry-after"], "5");
    issuer.change(|it| it.status = 200);
    function.advance(Duration::from_secs(5));
    assert_eq!(status(&function, &token).await, 200);
}

#[tokio::test]
async fn without_keys_the_answer_is_clear_and_comes_in_time() {
    let public = SigningKey::new("oct", Algorithm::RS256).public();
    let symmetric = json!({"keys": [{"kty": "oct", "k": "AAAA", "kid": "RS256", "alg": "HS256"}]});
    let encryption = {
        let mut key = public.clone();
        key["use"] = "enc".into();
        json!({"keys": [key]})
    };
    let mut large = json!({"keys": [public]});
    large["keys"][0]["x5c"] = "A".repeat(1 << 20).into();
    for (name, set) in [
        ("no JSON", b"<html>".to_vec()),
        ("no key set", b"[]".to_vec()),
        ("no keys", br#"{"keys": []}"#.to_vec()),
        ("keys that are no list", br#"{"keys": {}}"#.to_vec()),
        ("symmetric keys", symmetric.to_string().into_bytes()),
        ("encryption keys", encryption.to_string().into_bytes()),
        ("1 MB", large.to_string().into_bytes()),
        ("deep", [vec![b'['; 200_000], vec![b']'; 200_000]].concat()),
    ] {
        let issuer = Issuer::start().await;
        issuer.change(|it| it.key_set = Some(set));
        assert_unavailable(name, &issuer).await;
    }
    let elsewhere = "http://127.0.0.1:1";
    for (name, metadata) in [
        ("no metadata", json!({})),
        (
            "another issuer",
            json!({"issuer": elsewhere, "jwks_uri": elsewhere}),
        ),
        ("a list", json!([])),
    ] {
        let issuer = Issuer::start().await;
        issuer.change(|it| it.metadata = Some(metadata));
        assert_unavailable(name, &issuer).await;
    }
    for uri in [
        "http://keys.example/keys",
        "file:///etc/passwd",
        "keys",
        elsewhere,
    ] {
        let issuer = Issuer::start().await;
        let metadata = json!({"issuer": issuer.url, "jwks_uri": uri});
        issuer.change(|it| it.metadata = Some(metadata));
        assert_unavailable(uri, &issuer).await;
    }
    for status in [302, 401, 404, 500] {
        let issuer = Issuer::start().await;
        issuer.change(|it| it.status = status);
        assert_unavailable(&status.to_string(), &issuer).await;
    }
}

async fn assert_unavailable(name: &str, issuer: &Issuer) {
    let function = served(Oidc::issuer(&issuer.url));
    let begun = Instant::now();
    let response = call(&function, "Who.AmI", &issuer.valid()).await;
    assert_eq!(response.status, 400, "{name}: {response:?}");
    assert_eq!(response.headers["retry-after"], "5", "{name}");
    let text = response.body.to_string();
    assert!(
        text.contains("cannot check the credentials"),
        "{name}: {text}"
    );
    assert!(begun.elapsed() < Duration::from_secs(2), "{name}");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let event = event("POST", "/mcp", Some(&issuer.valid()), &ping);
    let response = respond(&function, &event).await;
    assert_eq!(response.status, 503, "{name}: {response:?}");
    assert_eq!(response.headers["retry-after"], "5", "{name}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_issuer_costs_seconds_at_most() {
    let issuer = Issuer::start().await;
    issuer.change(|it| it.delay = Duration::from_secs(30));
    let function = served(Oidc::issuer(&issuer.url));
    let begun = tokio::time::Instant::now();
    let token = issuer.valid();
    assert_eq!(status(&function, &token).await, 400);
    let elapsed = begun.elapsed();
    assert!(elapsed < Duration::from_secs(7), "{elapsed:?}");
    // Until the pause is over, calls do not wait.
    assert_eq!(status(&function, &token).await, 400);
    assert_eq!(begun.elapsed(), elapsed);
}

#[tokio::test]
async fn a_slow_issuer_does_not_hold_up_calls_that_have_keys() {
    let issuer = Issuer::start().await;
    let function = served(Oidc::issuer(&issuer.url));
    let token = issuer.token(&lasting(&issuer));
    assert_eq!(status(&function, &token).await, 200);
    issuer.change(|it| it.delay = Duration::from_secs(30));
    function.advance(2 * HOUR);
    let begun = Instant::now();
    let calls = (0..10).map(|_| status(&function, &token));
    assert_eq!(join_all(calls).await, [200; 10]);
    let elapsed = begun.elapsed();
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
}

/// RFC 8414, section 3.1: the well-known path comes before the path of the issuer.
#[tokio::test]
async fn metadata_is_also_found_at_the_path_of_rfc_8414() {
    let issuer = Issuer::start_at("/tenant", None).await;
    assert_eq!(
        status(&served(Oidc::issuer(&issuer.url)), &issuer.valid()).await,
        200
    );
    let path = "/.well-known/oauth-authorization-server/tenant".to_owned();
    issuer.change(|it| it.metadata_path = path);
    assert_eq!(
        status(&served(Oidc::issuer(&issuer.url)), &issuer.valid()).await,
        200
    );
}

/// RFC 7517, 4, and RFC 8725, 3.1: a key is used for nothing but what it says.
#[tokio::test]
async fn a_key_is_used_only_for_what_it_says() {
    for (algorithm, changes, status) in [
        (Algorithm::ES256, json!({}), 200),
        (Algorithm::ES256, json!({"key_ops": ["verify"]}), 200),
        (
            Algorithm::ES256,
            json!({"key_ops": ["sign", "verify"]}),
            200,
        ),
        // Azure's keys have no `alg`, and are used with RS256.
        (Algorithm::RS256, json!({"alg": null, "use": null}), 200),
        (Algorithm::ES256, json!({"alg": null, "use": null}), 200),
        (Algorithm::EdDSA, json!({"alg": null, "use": null}), 200),
        (Algorithm::PS256, json!({"alg": null, "use": null}), 401),
        // Without any other key, nothing can be checked.
        (Algorithm::ES256, json!({"key_ops": ["sign"]}), 400),
        (Algorithm::ES256, json!({"key_ops": []}), 400),
        (Algorithm::ES256, json!({"use": "enc"}), 400),
        (
            Algorithm::ES256,
            json!({"use": "enc", "key_ops": ["verify"]}),
            400,
        ),
        (
            Algorithm::ES256,
            json!({"use": "sig", "key_ops": ["encrypt"]}),
            400,
        ),
        (Algorithm::ES256, json!({"alg": "ES384"}), 400),
        (Algorithm::ES256, json!({"alg": "RS256"}), 400),
        (Algorithm::ES256, json!({"alg": "ECDH-ES"}), 400),
        (Algorithm::ES256, json!({"crv": "secp256k1"}), 400),
        (Algorithm::RS256, json!({"alg": "RS384"}), 400),
        (Algorithm::RS256, json!({"alg": "HS256"}), 400),
        // The key is for another algorithm than the token's.
        (Algorithm::RS256, json!({"alg": "PS256"}), 401),
        (Algorithm::ES256, json!({"kid": "other"}), 401),
        (Algorithm::ES256, json!({"kid": null}), 401),
        // An id is not a part of another one.
        (Algorithm::ES256, json!({"kid": "ES25"}), 401),
        (Algorithm::ES256, json!({"kid": "es256"}), 401),
    ] {
        let issuer = Issuer::start().await;
        let mut key = issuer.key(algorithm).public();
        for (name, value) in changes.as_object().unwrap() {
            key[name] = value.clone();
        }
        issuer.change(|it| it.key_set = Some(json!({"keys": [key]}).to_string().into_bytes()));
        let token = issuer.sign(algorithm, &claims(&issuer.url));
        let seen = self::status(&served(Oidc::issuer(&issuer.url)), &token).await;
        assert_eq!(seen, status, "{changes}");
    }
}

/// A token without `kid` is tried with a few keys, and an issuer has at most a hundred.
#[tokio::test]
async fn the_number_of_keys_is_limited() {
    let others: Vec<_> = (0..8)
        .map(|_| SigningKey::new("x", Algorithm::ES256))
        .collect();
    let issuer = Issuer::start().await;
    let own = issuer.key(Algorithm::ES256);
    let serve = |keys: Vec<Value>| {
        issuer.change(|it| it.key_set = Some(json!({"keys": keys}).to_string().into_bytes()));
        served(Oidc::issuer(&issuer.url))
    };
    let without_id = own.sign_as(&json!({"alg": "ES256"}), &claims(&issuer.url));
    for (before, expected) in [(0, 200), (7, 200), (8, 401)] {
        let others = others[..before].iter();
        let keys = others.map(SigningKey::public).chain([own.public()]);
        let seen = status(&serve(keys.collect()), &without_id).await;
        assert_eq!(seen, expected, "{before}");
    }
    let with_id = own.sign(&claims(&issuer.url));
    for (before, expected) in [(99, 200), (100, 401)] {
        let other = others[0].public();
        let keys = std::iter::repeat_n(other, before).chain([own.public()]);
        assert_eq!(
            status(&serve(keys.collect()), &with_id).await,
            expected,
            "{before}"
        );
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
        let token = issuer.token(&claims(&spelled));
        assert_eq!(status(&function, &token).await, 200);
        let token = issuer.token(&claims(&issuer.url));
        assert_eq!(status(&function, &token).await, 401);
    }
}
