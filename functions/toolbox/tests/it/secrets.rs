//! A store that does not answer.

use std::time::Duration;

use test_support::{aws::CREDENTIALS, lambda::event};

use crate::lambda::invoke;

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
