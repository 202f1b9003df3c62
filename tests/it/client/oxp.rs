//! The OXP client against a tool server.

use std::{collections::BTreeMap, time::Duration};

use lambda_tools::client::{
    ClientError, ClientOptions, JwtSigner,
    oxp::{CallOutcome, CallRequest, Dialect, OxpClient},
};
use serde::Deserialize;
use serde_json::json;

use test_support::Running;

use super::once;
use crate::tools::program;

const DIALECTS: [Dialect; 3] = [Dialect::Header, Dialect::Schema, Dialect::Otc];
#[cfg(feature = "jwt")]
const SECRET: &str = "jwt-secret-of-the-client-0123456789abcdef";

fn without_retries(url: &str) -> OxpClient {
    super::oxp(url, once())
}

#[tokio::test]
async fn every_outcome_is_returned_as_data_in_every_dialect() {
    let (_running, url) = Running::serving(program().env("TOOLS_SECRETS", "none"));
    for dialect in DIALECTS {
        let client = without_retries(&url).dialect(dialect);
        assert!(client.health().await.unwrap());

        let tools = client.tools().await.unwrap();
        assert_eq!(tools.len(), 7, "{dialect:?}");
        assert_eq!(tools[0].id, "Calculator.Add@1.0.0");
        assert_eq!(tools[0].input_schema["properties"]["a"]["type"], "number");
        let gmail = tools
            .iter()
            .find(|it| it.name == "Gmail_GetEmails")
            .unwrap();
        assert!(gmail.requirements.user_id && gmail.requirements.authorization[0].id == "google");

        let id = format!("id-{dialect:?}");
        let call = CallRequest::new("Calculator.Add@1").input(json!({"a": 10, "b": 5}));
        let reply = client.call(&call.call_id(&id).trace_id("t")).await.unwrap();
        assert_eq!(
            (reply.call_id, reply.is_replay, reply.attempts),
            (id, false, 1)
        );
        assert!(reply.duration.is_some_and(|it| it < Duration::from_secs(5)));
        assert_eq!(reply.outcome.value(), Some(json!(15)));

        let ring = |id: &str| CallRequest::new("Doorbell.Ring").input(json!({"doorbell_id": id}));
        let outcome = client.call(&ring("doorbell1")).await.unwrap().outcome;
        let CallOutcome::ToolError(failure) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(failure.message, "Doorbell ID not found");
        assert!(failure.can_retry && failure.developer_message.is_some());
        assert_eq!(failure.retry_after, Some(Duration::from_millis(500)));
        let prompt = failure.additional_prompt_content.unwrap();
        assert_eq!(prompt, "ids: doorbell42");

        let wrong = CallRequest::new("Calculator.Add").input(json!({"a": "ten"}));
        let outcome = client.call(&wrong).await.unwrap().outcome;
        let CallOutcome::InvalidInput {
            parameter_errors, ..
        } = &outcome
        else {
            panic!("{outcome:?}")
        };
        let expected = [("a", "Must be a number"), ("b", "Is required")];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(*parameter_errors, BTreeMap::from(expected));
        assert!(outcome.message().contains("b: Is required"));

        let outcome = client
            .call(&CallRequest::new("No.Such"))
            .await
            .unwrap()
            .outcome;
        assert!(matches!(&outcome, CallOutcome::ServerError(it) if it.message.contains("No_Such")));

        let outcome = client
            .call(&CallRequest::new("Gmail.GetEmails"))
            .await
            .unwrap()
            .outcome;
        let CallOutcome::MissingRequirements(missing) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(missing.user_id && missing.secrets.is_empty());

        let sms = json!({"to": "+15005550006", "message": "Hello"});
        let outcome = client
            .call(&CallRequest::new("SMS.Send").input(sms))
            .await
            .unwrap()
            .outcome;
        assert!(
            matches!(&outcome, CallOutcome::MissingRequirements(it) if it.secrets == ["TWILIO_API_KEY"])
        );
    }
}

#[tokio::test]
async fn a_failed_call_is_retried_after_the_time_it_names() {
    let (_running, url) = Running::serving(&mut program());
    let client = super::oxp(&url, ClientOptions::default().attempts(2));
    let call = CallRequest::new("Doorbell.Ring").input(json!({"doorbell_id": "doorbell1"}));
    let begun = std::time::Instant::now();
    let reply = client.call(&call).await.unwrap();
    assert_eq!(reply.attempts, 2);
    assert!(begun.elapsed() >= Duration::from_millis(500));
    assert!(matches!(reply.outcome, CallOutcome::ToolError(_)));
}

#[tokio::test]
async fn a_call_with_the_same_id_is_a_replay() {
    let (_running, url) = Running::serving(&mut program());
    let client = without_retries(&url);
    let ring = CallRequest::new("Doorbell.Ring").input(json!({"doorbell_id": "doorbell42"}));
    let ring = ring.call_id("ring-1");
    assert!(!client.call(&ring).await.unwrap().is_replay);
    assert!(client.call(&ring).await.unwrap().is_replay);
}

#[tokio::test]
async fn a_typed_call_returns_a_value_or_an_error() {
    #[derive(Deserialize)]
    struct Now {
        timestamp: String,
    }
    let (_running, url) = Running::serving(&mut program());
    let client = without_retries(&url);
    let add = |input| CallRequest::new("Calculator.Add").input(input);
    let sum: f64 = client.run(&add(json!({"a": 1, "b": 0.5}))).await.unwrap();
    assert!((sum - 1.5).abs() < f64::EPSILON);
    let now: Now = client
        .run(&CallRequest::new("System.GetTimestamp"))
        .await
        .unwrap();
    assert!(now.timestamp.contains('T'));
    let error = client.run::<f64>(&add(json!({"a": 1}))).await.unwrap_err();
    assert!(error.to_string().contains("b: Is required"), "{error}");
    let error = client.run::<f64>(&add(json!([1, 2]))).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::NoValue(it) if matches!(**it, CallOutcome::ServerError(_)))
    );
    let error = client.run::<bool>(&add(json!({"a": 1, "b": 2}))).await;
    assert!(matches!(error, Err(ClientError::Unreadable(_))));
}

#[cfg(feature = "jwt")]
#[tokio::test]
async fn api_keys_and_jwts_are_sent() {
    let (_running, url) = Running::serving(
        program()
            .env("TOOLS_AUTH", "api-key,jwt")
            .env("TOOLS_JWT_AUDIENCES", "https://tools.example")
            .env("TOOLS_JWT_SUBJECT_IS_USER", "yes")
            .env("TOOLS_JWT_SECRET", SECRET)
            .env("TOOLS_API_KEY", "key-of-the-client"),
    );
    let jwt = || {
        JwtSigner::signed_with(SECRET)
            .subject("user-1")
            .audience("https://tools.example")
    };
    let accepted = [once().api_key("key-of-the-client"), once().jwt(jwt())];
    for options in accepted {
        let client = super::oxp(&url, options);
        assert_eq!(client.tools().await.unwrap().len(), 7);
    }
    let rejected = [
        once(),
        once().api_key("another-key"),
        once().jwt(JwtSigner::signed_with(
            "another-secret-0123456789abcdef012345",
        )),
        once().jwt(jwt().audience("https://other.example")),
    ];
    for options in rejected {
        let client = super::oxp(&url, options);
        assert!(client.health().await.unwrap(), "/health is open");
        let error = client.tools().await.unwrap_err();
        assert!(matches!(error, ClientError::Unauthorized { .. }), "{error}");
        let error = client
            .call(&CallRequest::new("Calculator.Add"))
            .await
            .unwrap_err();
        assert!(matches!(error, ClientError::Unauthorized { .. }), "{error}");
    }
    let client = super::oxp(&url, once().jwt(jwt()));
    let call = CallRequest::new("Gmail.GetEmails").user_id("user-2");
    let outcome = client.call(&call).await.unwrap().outcome;
    assert!(matches!(&outcome, CallOutcome::ServerError(it) if it.message.contains("this user")));
    // The JWT's subject is the user; only the Google token is missing.
    let outcome = client
        .call(&CallRequest::new("Gmail.GetEmails"))
        .await
        .unwrap()
        .outcome;
    assert!(
        matches!(&outcome, CallOutcome::MissingRequirements(it) if !it.user_id),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_misconfigured_client_returns_an_error() {
    for url in [
        "tools.example",
        "ftp://tools.example",
        "http://a:b@tools.example",
        "http://t/?q",
    ] {
        assert!(
            matches!(OxpClient::new(url, once()), Err(ClientError::Setup(_))),
            "{url}"
        );
    }
    let client = super::oxp(
        "http://127.0.0.1:1",
        once().jwt(JwtSigner::signed_with("short")),
    );
    assert!(matches!(client.tools().await, Err(ClientError::Setup(_))));
    let client = super::oxp("http://127.0.0.1:1", once().api_key("line\nfeed"));
    assert!(matches!(client.tools().await, Err(ClientError::Setup(_))));
    assert!(matches!(
        without_retries("http://127.0.0.1:1").health().await,
        Err(ClientError::Unreachable(_))
    ));
}

#[test]
fn credentials_are_not_printed() {
    let jwt = JwtSigner::signed_with("marked-secret-0123456789abcdef0123456789");
    let call = CallRequest::new("SMS.Send")
        .secret("KEY", "marked-value")
        .token("google", "marked-token");
    let printed = format!(
        "{:?} {:?} {call:?} {jwt:?}",
        super::oxp("http://tools.example", once().api_key("marked-key")),
        super::oxp("http://tools.example", once().jwt(jwt.clone())),
    );
    assert!(!printed.contains("marked"), "{printed}");
    let error = OxpClient::new("http://user:marked@tools.example", once()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("marked"));
}
