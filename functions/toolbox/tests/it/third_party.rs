//! Gmail and Twilio, in normal operation and with errors.

use lambda_tools::{Toolkit, testing::LambdaFunction};
use serde_json::{Value, json};
use test_support::lambda::calling;

use events::Stub;

fn function(stub: &Stub) -> LambdaFunction {
    LambdaFunction::new(Toolkit::new(toolbox::tools(stub.endpoints())).unwrap())
}

async fn call(function: &LambdaFunction, body: &Value) -> Value {
    let event = calling(body, &[]).to_string();
    let answer = function.respond(&event).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

async fn gmail(function: &LambdaFunction, query: Option<&str>) -> Value {
    let input = query.map_or(json!({}), |query| json!({"query": query}));
    let context =
        json!({"user_id": "u", "authorization": [{"id": "google", "token": "marked-token"}]});
    let body = json!({"tool_id": "Gmail.GetEmails", "input": input, "context": context});
    call(function, &body).await
}

async fn sms(function: &LambdaFunction, to: &str, key: &str) -> Value {
    let input = json!({"to": to, "message": "Hello & goodbye"});
    let context = json!({"secrets": [{"id": "TWILIO_API_KEY", "value": key}]});
    let body = json!({"tool_id": "SMS.Send", "input": input, "context": context});
    call(function, &body).await
}

/// Checks what a tool made of an error of its API.
fn assert_failure(answer: &Value, case: &str, can_retry: bool, after_ms: &Value, message: &str) {
    let error = &answer["error"];
    assert_eq!(error["can_retry"], can_retry, "{case}: {answer}");
    assert_eq!(error["retry_after_ms"], *after_ms, "{case}: {answer}");
    let said = error["message"].as_str().unwrap();
    assert!(said.contains(message), "{case}: {answer}");
    assert!(!answer.to_string().contains("marked"), "{case}: {answer}");
}

#[tokio::test]
async fn gmail_lists_and_then_reads_each_message() {
    let stub = Stub::start().await;
    let answer = gmail(&function(&stub), Some("is:unread from:ä&b")).await;
    assert_eq!(answer["value"]["emails"][1]["subject"], "Your Receipt");
    let mut requests = stub.requests();
    requests[1..].sort();
    let messages = "GET /gmail/v1/users/me/messages";
    let metadata = "format=metadata&metadataHeaders=Subject";
    assert_eq!(
        requests,
        [
            format!("{messages}?maxResults=10&q=is%3Aunread+from%3A%C3%A4%26b"),
            format!("{messages}/email_1?{metadata}"),
            format!("{messages}/email_2?{metadata}"),
        ]
    );
}

#[tokio::test]
async fn messages_that_are_not_there_are_omitted() {
    let stub = Stub::start().await;
    let function = function(&stub);
    let emails = &gmail(&function, Some("one-deleted")).await["value"]["emails"];
    assert_eq!(emails.as_array().unwrap().len(), 1);
    assert_eq!(emails[0]["id"], "email_2");
    let none = gmail(&function, Some("none")).await;
    assert_eq!(none["value"], json!({"emails": []}));
    let failed = gmail(&function, Some("one-limited")).await;
    assert_eq!(failed["error"]["retry_after_ms"], 9000);
}

#[tokio::test]
async fn gmails_errors_become_failures_with_the_right_advice() {
    let stub = Stub::start().await;
    let function = function(&stub);
    let many = "too many requests";
    for (query, can_retry, after_ms, message) in [
        ("many-requests", true, json!(7000), many),
        ("many-requests-until", true, json!(600_000), many),
        ("quota", true, Value::Null, "not available"),
        ("scope", false, Value::Null, "does not allow"),
        ("error", true, Value::Null, "not available"),
        ("bad", false, Value::Null, "could not answer"),
        ("slow", true, Value::Null, "did not answer in time"),
        ("broken", true, Value::Null, "cannot be read"),
        ("other", true, Value::Null, "cannot be read"),
    ] {
        let answer = gmail(&function, Some(query)).await;
        assert_failure(&answer, query, can_retry, &after_ms, message);
    }
}

const KEY: &str = "AC00000000000000000000000000000000:auth-token:+15005550006";

#[tokio::test]
async fn the_request_to_twilio_has_the_documented_format() {
    let stub = Stub::start().await;
    let function = function(&stub);
    let answer = sms(&function, "+15005550010", KEY).await;
    assert_eq!(answer["value"], json!({"status": "sent"}));
    let service = KEY.replace("+15005550006", "MG123");
    sms(&function, "+15005550010", &service).await;
    let account = "POST AC00000000000000000000000000000000";
    assert_eq!(
        stub.requests(),
        [
            format!("{account} To=%2B15005550010&From=%2B15005550006&Body=Hello+%26+goodbye"),
            format!("{account} To=%2B15005550010&MessagingServiceSid=MG123&Body=Hello+%26+goodbye"),
        ]
    );
}

#[tokio::test]
async fn twilios_errors_never_lead_to_a_second_message() {
    let stub = Stub::start().await;
    let function = function(&stub);
    for (to, can_retry, after_ms, message) in [
        ("+15005550001", false, Value::Null, "does not accept"),
        ("+15005550429", true, json!(3000), "too many requests"),
        ("+15005550503", true, Value::Null, "not available"),
        // After these it is unknown whether the message was sent.
        ("+15005550500", false, Value::Null, "could not send"),
        ("+15005550408", false, Value::Null, "did not answer in time"),
        ("+15005550200", false, Value::Null, "cannot be read"),
        ("+15005550204", false, Value::Null, "cannot be read"),
    ] {
        let answer = sms(&function, to, KEY).await;
        assert_failure(&answer, to, can_retry, &after_ms, message);
    }
    let detail = &sms(&function, "+15005550001", KEY).await["error"]["developer_message"];
    assert_eq!(detail, "Twilio answered 400 Bad Request, error 21211.");
}

#[tokio::test]
async fn an_invalid_key_is_a_setup_failure_and_is_not_shown() {
    let stub = Stub::start().await;
    let function = function(&stub);
    let rejected = KEY.replace("auth-token", "marked");
    for key in [
        &*rejected,
        "marked",
        "AC1:marked",
        "AC1::+1",
        "ac:marked:+1",
        "AC/../x:marked:+1",
    ] {
        let answer = sms(&function, "+15005550010", key).await;
        let message = "Text messages are not set up correctly";
        assert_failure(&answer, key, false, &Value::Null, message);
    }
}
