//! The examples in the texts of the specifications, run as they are printed.
//!
//! `tests/spec/seeds` has the texts, `tests/spec/examples` the JSON of OXP's documentation. Nothing
//! of them is typed here again.

use std::fs;

use lambda_tools::testing::{ExpectedResponse, LambdaFunction};
use serde_json::{Value, json};

use super::read;
use crate::support::repository;
use events::{Stub, TWILIO_KEY, server_of};

/// A JSON example, and the text before it, from the end of the example before.
type Example = (String, Value);

fn examples_in(name: &str) -> Vec<Example> {
    let text = fs::read_to_string(repository(&format!("tests/spec/seeds/{name}.txt"))).unwrap();
    let (mut examples, mut rest, mut before) = (Vec::new(), text.as_str(), String::new());
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let is_first_in_line = rest.trim_start_matches(' ').starts_with('{');
        if let Some(Ok(value)) = values.next().filter(|_| is_first_in_line) {
            rest = &rest[values.byte_offset()..];
            examples.push((std::mem::take(&mut before), value));
        } else {
            let (line, more) = rest.split_once('\n').unwrap_or((rest, ""));
            before = format!("{before}{line}\n");
            rest = more;
        }
    }
    examples
}

async fn send(function: &LambdaFunction, path: &str, body: &Value) -> ExpectedResponse {
    let event = json!({
        "version": "2.0", "rawPath": path, "rawQueryString": "",
        "headers": {"content-type": "application/json",
                    "authorization": "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"},
        "requestContext": {"http": {"method": "POST", "path": path, "protocol": "HTTP/1.1",
                                    "sourceIp": "192.0.2.1", "userAgent": "test"}},
        "body": body.to_string(),
    });
    function.respond(&event.to_string()).await.unwrap()
}

/// Compares a response with a published one. The clock stands still, so nothing takes time; and a
/// message for developers may go on.
fn assert_same(ours: &Value, published: &Value, context: &str) {
    let (mut ours, mut published) = (ours.clone(), published.clone());
    for body in [&mut ours, &mut published] {
        let outcome = if body["result"].is_object() {
            &mut body["result"]
        } else {
            &mut *body
        };
        if let Some(duration) = outcome.get_mut("duration") {
            assert!(duration.take().is_u64(), "{context}");
        }
    }
    if let Some(Value::String(start)) = published.get("developer_message") {
        let said = ours["developer_message"].as_str().unwrap();
        assert!(said.starts_with(start), "{context}: {said}");
        ours["developer_message"] = start.as_str().into();
    }
    assert_eq!(ours, published, "{context}");
}

/// A tool's API accepts no plain word as a key.
fn with_valid_key(request: &Value) -> Value {
    let mut request = request.clone();
    if let Some(key) = request.pointer_mut("/context/secrets/0/value") {
        *key = TWILIO_KEY.into();
    }
    request
}

#[tokio::test]
async fn every_request_in_a_text_gets_the_response_after_it() {
    let stub = Stub::start().await;
    let toolbox = LambdaFunction::new(server_of(&repository("events/calculator"), &stub));
    for (name, version) in [
        ("oxp-1.0-call-tool", Some("1.0")),
        ("otc-1.0-call-tool", None),
    ] {
        let examples = examples_in(name);
        assert_eq!(examples.len(), 8, "{name}");
        for exchange in examples.chunks(2) {
            let [(before, request), (head, answer)] = exchange else {
                panic!("{name}: a request without a response");
            };
            assert!(before.contains("POST /call HTTP/1.1"), "{before}");
            let status: u16 = head.split("HTTP/1.1 ").nth(1).unwrap()[..3]
                .parse()
                .unwrap();
            let got = send(&toolbox, "/call", request).await;
            assert_eq!(got.status, status, "{name} {request} {got:?}");
            assert_same(&got.body, answer, &format!("{name} {request}"));
            if let Some(version) = version {
                assert!(head.contains(&format!("OXP-Version: {version}")), "{head}");
                assert_eq!(got.headers["oxp-version"], version);
            }
        }
    }
}

#[tokio::test]
async fn every_example_of_a_request_gets_the_example_of_its_response() {
    let stub = Stub::start().await;
    let toolbox = LambdaFunction::new(server_of(&repository("events/calculator"), &stub));
    let (mut requests, mut responses) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(repository("tests/spec/examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("request.") {
            requests.push(read(&path));
        } else if name.starts_with("response.call-") {
            responses.push(read(&path));
        }
    }
    let examples = examples_in("otc-1.0-call-tool-request");
    requests.extend(examples.into_iter().map(|(_, request)| request));
    assert_eq!(requests.len(), 10);
    for request in &requests {
        let id = &request["call_id"];
        let mut answers = responses.iter().filter(|it| it["call_id"] == *id);
        let answer = answers.next().unwrap();
        let got = send(&toolbox, "/tools/call", &with_valid_key(request)).await;
        assert_eq!(got.status, 200, "{id} {got:?}");
        assert_same(&got.body, answer, &id.to_string());
    }
}
