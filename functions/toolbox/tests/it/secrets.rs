//! The function's secrets in AWS Secrets Manager.

use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::{
    aws::{CREDENTIALS, Emulator},
    lambda::{LAMBDA, event},
    marks::token,
};

use crate::{
    lambda::invoke,
    support::{Running, toolbox},
};
use events::{Stub, TWILIO_KEY};

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn the_function_reads_its_keys_and_its_tools_secrets_from_secrets_manager() {
    let emulator = Emulator::start().await;
    let proxy = emulator.proxy().await;
    proxy.put_secret("prod/TWILIO_API_KEY", TWILIO_KEY).await;
    proxy
        .put_secret("prod/TOOLS_API_KEY", "the-key-of-today\n")
        .await;
    let jwt = "jwt-secret-of-today-0123456789abcdef";
    proxy.put_secret("prod/TOOLS_JWT_SECRET", jwt).await;
    proxy.take_requests();
    let stub = Stub::start().await;
    let with_key = |name: &str| (event(name), Some(Duration::from_secs(20)));
    let mut sms = event("secrets/stored/sms.header-form");
    sms["headers"]["oxp-api-key"] = "the-key-of-today".into();
    let mut signed = event("jwt/valid");
    signed["headers"]["authorization"] = format!("Bearer {}", token(jwt)).into();
    let events = [
        (sms, Some(Duration::from_secs(20))),
        (signed, Some(Duration::from_secs(20))),
        with_key("authentication/bearer"),
        with_key("authentication/wrong-key"),
        // Expired long ago by this machine's clock.
        with_key("jwt/valid"),
    ];
    let (aws, twilio) = (proxy.url(), stub.url());
    let settings = [
        ("AWS_ENDPOINT_URL", &*aws),
        ("TOOLS_AUTH", "api-key, jwt"),
        ("TOOLS_SECRETS", "secrets-manager"),
        ("TOOLS_SECRETS_PREFIX", "prod/"),
        ("TWILIO_URL", &*twilio),
    ];
    let environment = [&CREDENTIALS[..], &settings].concat();
    let reports = invoke(&events, &environment).await;
    let statuses = reports
        .iter()
        .map(|(_, answer, _)| answer["statusCode"].clone());
    assert_eq!(statuses.collect::<Vec<_>>(), [200, 200, 200, 401, 401]);
    let body: Value = serde_json::from_str(reports[0].1["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["value"]["status"], "sent", "{body}");
    assert_eq!(proxy.take_actions(), ["BatchGetSecretValue"], "all at once");

    // No runtime API sends events here, but the secrets are read anyway.
    let mut command = toolbox();
    command
        .envs(environment.iter().copied())
        .envs(LAMBDA)
        .env("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9");
    let _running = Running::start(&mut command);
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut requested = Vec::new();
    while requested.is_empty() {
        assert!(
            Instant::now() < deadline,
            "nothing is read before the first event"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
        requested = proxy.take_actions();
    }
    assert_eq!(requested, ["BatchGetSecretValue"]);
}

#[tokio::test]
async fn a_hanging_store_does_not_prevent_a_response() {
    // Accepts connections and sends nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let aws = [
        ("AWS_ENDPOINT_URL", &*url),
        ("TOOLS_SECRETS", "secrets-manager"),
        ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
    ];
    let short = Some(Duration::from_millis(900));
    let with_key = (event("authentication/key"), short);
    let sms = (event("secrets/stored/sms.header-form"), short);
    let ring = (event("doorbell/ring.header-form"), short);
    for (auth, calls, request) in [
        ("none", "none", sms),
        ("api-key", "none", with_key),
        ("none", "dynamodb", ring),
    ] {
        let settings = [("TOOLS_AUTH", auth), ("TOOLS_IDEMPOTENCY", calls)];
        let environment = [&CREDENTIALS[..], &aws, &settings].concat();
        let (_, answer, is_in_time) = invoke(&[request], &environment).await.remove(0);
        assert!(is_in_time, "{auth}");
        assert_eq!(answer["statusCode"], 400, "{answer}");
        assert_eq!(answer["headers"]["retry-after"], "1", "{answer}");
    }
}
