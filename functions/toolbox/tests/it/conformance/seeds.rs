//! The examples in the texts of the specifications, run as they are printed.
//!
//! `tests/spec/seeds` has the texts, `tests/spec/examples` the JSON of OXP's documentation. Nothing
//! of them is typed here again.

use std::{collections::BTreeMap, fs};

use lambda_tools::{
    Server, Toolkit,
    testing::{ExpectedResponse, LambdaFunction},
};
use serde_json::{Value, json};

use super::read;
use crate::support::repository;
use events::{Stub, TWILIO_KEY, server_of};

/// The files of `tests/spec/examples` that no call here is compared with.
const SKIPPED: &[(&str, &str)] = &[
    (
        "header-form.challenge-check",
        "a user has to sign in first: the tests of OAuth do so",
    ),
    (
        "header-form.response.missing-authorization",
        "an outcome with 'missing_requirements', which the specification's text has in a 400",
    ),
    ("header-form.response.missing-user-id", "the same"),
    ("response.call-623", "no request belongs to it"),
];

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

async fn send(
    function: &LambdaFunction,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> ExpectedResponse {
    let event = json!({
        "version": "2.0", "rawPath": path, "rawQueryString": "",
        "headers": {"content-type": "application/json",
                    "authorization": "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"},
        "requestContext": {"http": {"method": method, "path": path, "protocol": "HTTP/1.1",
                                    "sourceIp": "192.0.2.1", "userAgent": "test"}},
        "body": body.map(Value::to_string),
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

/// Asserts that a published value is a part of ours.
fn assert_contains(ours: &Value, published: &Value, context: &str) {
    match (ours, published) {
        (Value::Object(ours), Value::Object(published)) => {
            for (name, value) in published {
                let ours = ours.get(name).unwrap_or_else(|| panic!("{context}/{name}"));
                assert_contains(ours, value, &format!("{context}/{name}"));
            }
        }
        _ => assert_eq!(ours, published, "{context}"),
    }
}

fn names_of(value: &Value) -> Vec<&String> {
    let mut names: Vec<_> = value.as_object().unwrap().keys().collect();
    names.sort();
    names
}

/// A tool's API accepts no plain word as a key.
fn with_valid_key(request: &Value) -> Value {
    let mut request = request.clone();
    if let Some(key) = request.pointer_mut("/context/secrets/0/value") {
        *key = TWILIO_KEY.into();
    }
    request
}

#[expect(
    clippy::too_many_lines,
    reason = "every text and every file is accounted for in one place"
)]
#[tokio::test]
async fn every_example_of_the_specifications_gets_its_answer() {
    let stub = Stub::start().await;
    let toolbox = LambdaFunction::new(server_of(&repository("events/calculator"), &stub));
    let mut found = BTreeMap::new();
    let mut published = BTreeMap::new();
    for entry in fs::read_dir(repository("tests/spec/examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        published.insert(name, read(&path));
    }
    assert_eq!(published.len(), 27);
    let answer_to = |call: &Value| {
        let id = call["call_id"].as_str().unwrap();
        let named = |name: &str| name.starts_with("response.call-");
        let mut responses = published.iter().filter(|(name, _)| named(name));
        responses.find(|(_, it)| it["call_id"] == id).unwrap()
    };
    let mut compared: Vec<_> = SKIPPED.iter().map(|(name, _)| (*name).to_owned()).collect();

    // Requests with their responses.
    for (name, version) in [
        ("oxp-1.0-call-tool", Some("1.0")),
        ("otc-1.0-call-tool", None),
    ] {
        let examples = examples_in(name);
        found.insert(name, examples.len());
        for exchange in examples.chunks(2) {
            let [(before, request), (head, answer)] = exchange else {
                panic!("{name}: a request without a response");
            };
            assert!(before.contains("POST /call HTTP/1.1"), "{before}");
            let status: u16 = head.split("HTTP/1.1 ").nth(1).unwrap()[..3]
                .parse()
                .unwrap();
            let got = send(&toolbox, "POST", "/call", Some(request)).await;
            assert_eq!(got.status, status, "{name} {request} {got:?}");
            assert_same(&got.body, answer, &format!("{name} {request}"));
            if let Some(version) = version {
                assert!(head.contains(&format!("OXP-Version: {version}")), "{head}");
                assert_eq!(got.headers["oxp-version"], version);
            }
        }
    }

    // Requests whose responses are among the examples.
    let name = "otc-1.0-call-tool-request";
    let examples = examples_in(name);
    found.insert(name, examples.len());
    let files = published
        .iter()
        .filter(|(name, _)| name.starts_with("request."));
    let files = files.map(|(name, request)| {
        compared.push(name.clone());
        request.clone()
    });
    let requests: Vec<_> = files
        .chain(examples.into_iter().map(|(_, it)| it))
        .collect();
    assert_eq!(requests.len(), 10);
    for request in &requests {
        let (name, answer) = answer_to(request);
        let got = send(
            &toolbox,
            "POST",
            "/tools/call",
            Some(&with_valid_key(request)),
        )
        .await;
        assert_eq!(got.status, 200, "{name} {got:?}");
        assert_same(&got.body, answer, name);
        compared.push(name.clone());
    }
    let failure = examples_in("oxp-1.0-call-tool").pop().unwrap().1;
    let (name, answer) = answer_to(&failure);
    assert_eq!(failure, *answer);
    compared.push(name.clone());

    // Errors about other tools: only their fields can be the same.
    let name = "header-form.error.parameters";
    let mut request = with_valid_key(&published["request.SMS.Send"]);
    request["input"] = json!({"to": "1", "message": ""});
    let got = send(&toolbox, "POST", "/tools/call", Some(&request)).await;
    assert_eq!(got.status, 422);
    assert_eq!(names_of(&got.body), names_of(&published[name]));
    let errors = |it: &Value| it["parameter_errors"].clone();
    assert_eq!(
        names_of(&errors(&got.body)),
        names_of(&errors(&published[name]))
    );
    compared.push(name.to_owned());
    let name = "header-form.error.authorization";
    let challenge = read(&repository("events/authorization/challenge.expected.json"));
    let first = |it: &Value| it["missing_requirements"]["authorization"][0].clone();
    let (ours, theirs) = (first(&challenge["body"]), first(&published[name]));
    assert_eq!(
        (challenge["status"].as_u64(), names_of(&ours)),
        (Some(400), names_of(&theirs))
    );
    compared.push(name.to_owned());

    // Lists.
    let name = "oxp-1.0-list-tools";
    let examples = examples_in(name);
    found.insert(name, examples.len());
    let [(before, none), (_, some)] = &examples[..] else {
        panic!("{name}: {}", examples.len());
    };
    assert!(before.contains("GET /tools HTTP/1.1"));
    let empty = LambdaFunction::new(Server::new(Toolkit::new([]).unwrap()));
    let got = send(&empty, "GET", "/tools", None).await;
    assert_contains(&got.body, none, name);
    let got = send(&toolbox, "GET", "/tools", None).await;
    assert_eq!(got.body["$schema"], some["$schema"]);
    let ours = got.body["tools"].as_array().unwrap();
    for tool in some["tools"].as_array().unwrap() {
        let ours = ours.iter().find(|it| it["id"] == tool["id"]).unwrap();
        assert_contains(ours, tool, name);
    }

    // OpenTool's examples have placeholders in place of values: their fields are the same.
    let name = "opentool-client-server";
    let examples = examples_in(name);
    found.insert(name, examples.len());
    let values: Vec<_> = examples.iter().map(|(_, value)| value).collect();
    let [version, request, success, failure, document] = values[..] else {
        panic!("{name}: {}", values.len());
    };
    let got = send(&toolbox, "GET", "/opentool/version", None).await;
    assert_eq!((got.status, names_of(&got.body)), (200, names_of(version)));
    for (method, params, answer) in [
        (
            "Doorbell_Ring",
            json!({"doorbell_id": "doorbell42"}),
            success,
        ),
        (
            "Doorbell_Ring",
            json!({"doorbell_id": "doorbell1"}),
            failure,
        ),
    ] {
        let mut request = request.clone();
        (request["method"], request["params"]) = (method.into(), params);
        let got = send(&toolbox, "POST", "/opentool/call", Some(&request)).await;
        assert_eq!((got.status, names_of(&got.body)), (200, names_of(answer)));
        for name in ["jsonrpc", "id", "result"] {
            assert_eq!(got.body[name], answer[name], "{name}");
        }
        match answer["error"].as_object() {
            None => assert_eq!(got.body["error"], Value::Null),
            Some(error) => {
                assert_eq!(got.body["error"]["code"], error["code"]);
                assert_eq!(names_of(&got.body["error"]), names_of(&answer["error"]));
            }
        }
    }
    let got = send(&empty, "GET", "/opentool/load", None).await;
    assert_eq!((got.status, &got.body), (200, document));

    // `the_tools_are_those_of_the_specification` compares the definitions.
    let definitions = published
        .keys()
        .filter(|name| name.contains(".definition."));
    compared.extend(definitions.cloned());
    compared.sort();
    compared.dedup();
    assert_eq!(compared, published.keys().cloned().collect::<Vec<_>>());
    let expected = [
        ("opentool-client-server", 5),
        ("otc-1.0-call-tool", 8),
        ("otc-1.0-call-tool-request", 5),
        ("oxp-1.0-call-tool", 8),
        ("oxp-1.0-list-tools", 2),
    ];
    assert_eq!(found, expected.into());
}
