//! The contents of recordings, and what they omit.

use axum::body::Body;
use lambda_http::tower::ServiceExt;

use super::*;
use crate::{Context, Failure, Server, Tool, Toolkit, clock::FIXED, secrets::Secrets};

/// Returns a response without a body.
fn ok() -> ExpectedResponse {
    ExpectedResponse::of(http::StatusCode::OK, &HeaderMap::new(), b"")
}

#[tokio::test]
async fn a_secret_from_the_store_or_from_a_header_is_not_recorded() {
    async fn reveal(_: Value, cx: Context) -> Result<Value, Failure> {
        Ok(json!(format!(
            "https://{}@a.example",
            cx.secret("KEY")?.expose()
        )))
    }

    let folder = std::env::temp_dir().join(format!("stored-{}", std::process::id()));
    for header in [None, Some(HeaderName::from_static("x-customer"))] {
        let input = json!({"type": "object"});
        let tool = Tool::dynamic("T.T@1.0.0", "d", input, json!({}), reveal);
        let server = Server::new(Toolkit::new([tool.secret("KEY")]).unwrap());
        let server = match header {
            None => server.secrets(Secrets::fixed([("KEY", "marked-value")])),
            Some(name) => server.secret_header("KEY", name),
        };
        let (router, app) = crate::assemble::assemble(server, FIXED, FIXED);
        let router = into_folder(folder.clone(), router, Arc::clone(&app.engine)).unwrap();
        let request = Request::post("/tools/call").header("x-customer", "marked-value");
        let request = request.body(Body::from(r#"{"tool_id": "T.T"}"#)).unwrap();
        assert_eq!(router.oneshot(request).await.unwrap().status(), 200);
        let files = ["expected.json", "json"].map(|it| {
            let file = folder.join(format!("0001-post-tools-call-T-T.{it}"));
            fs::read_to_string(file).unwrap()
        });
        fs::remove_dir_all(&folder).unwrap();
        let expected = &files[0];
        assert!(
            expected.contains("https://VALUE_OF_KEY@a.example"),
            "{expected}"
        );
        assert!(!files.concat().contains("marked"), "{files:?}");
    }
}

#[test]
fn confidential_parts_of_a_request_are_not_recorded() {
    let others = "x-amz-security-token x-vault-token x-forwarded-access-token x-amzn-oidc-data \
        x-of-the-future";
    let mut request = Request::get("/tools/stored-value/x?stored%2Dvalue&key=k-marked&page")
        .header("authorization", "Bearer marked-bearer")
        .header("cookie", "session=marked-cookie")
        .header(
            "user-agent",
            "agent/1.0 (marked-x-vault-token; c3RvcmVkLXZhbHVl)",
        )
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-06-18");
    for name in others.split(' ') {
        request = request.header(name, format!("marked-{name}"));
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let mut secrets: Vec<_> = credentials_of(&parts.headers).collect();
    secrets.push(("stored-value".into(), "VALUE_OF_KEY".to_owned()));
    let event = event_of(&parts, &redaction_of(&secrets));
    assert!(!event.to_string().contains("marked"), "{event:#}");
    assert_eq!(event["rawPath"], "/tools/VALUE_OF_KEY/x");
    assert_eq!(event["requestContext"]["http"]["path"], event["rawPath"]);
    assert_eq!(event["rawQueryString"], "VALUE_OF_KEY&key=PLACEHOLDER&page");
    let mut expected = json!({
        "user-agent": "agent/1.0 (PLACEHOLDER; VALUE_OF_KEY)",
        "content-type": "application/json",
        "mcp-protocol-version": "2025-06-18",
    });
    for name in others.split(' ').chain(["authorization", "cookie"]) {
        expected[name] = PLACEHOLDER.into();
    }
    assert_eq!(event["headers"], expected);
}

#[test]
fn a_body_without_secrets_is_recorded_as_it_was_sent() {
    let (parts, ()) = Request::post("/tools/call").body(()).unwrap().into_parts();
    let text = "{\"tool_id\": \"A.B\",\n  \"input\": {\"amount\": 1.50}}";
    let recording = recording_of(&parts, text.as_bytes(), vec![], ok(), &mut Value::Null);
    let (event, _) = recording.unwrap();
    assert_eq!(event["body"], text);
}

/// A short one, which failures and logs may show.
#[test]
fn the_answers_of_apis_are_recorded_without_secrets() {
    let request = Request::post("/tools/call").body(()).unwrap();
    let (parts, ()) = request.into_parts();
    let body = br#"{"tool_id": "A.B", "context": {"secrets": [{"id": "PIN", "value": "pin-77"}]}}"#;
    let mut answers =
        json!({"GET /a?key=key-77": {"status": 200, "body": ["pin-77", "key-77 pin-7"]}});
    let stored = vec![("KEY".to_owned(), "key-77".into())];
    recording_of(&parts, body, stored, ok(), &mut answers).unwrap();
    let redacted = json!({"GET /a?key=VALUE_OF_KEY": {"status": 200,
                          "body": ["VALUE_OF_PIN", "VALUE_OF_KEY pin-7"]}});
    assert_eq!(answers, redacted);
}

/// Requests and their bodies, each with the name of the file. A caller's text never becomes a path.
const FILES: &str = r#"GET /tools |  | get-tools
POST /call | {"tool_id": "A.B@1.0.0"} | post-call-A-B-1-0-0
POST /call | {"request": {"tool_id": "A.B"}} | post-call-A-B
POST /mcp | {"method": "tools/call", "params": {"name": "A_B"}} | post-mcp-A-B
POST /mcp | {"method": "tools/list"} | post-mcp-tools-list
POST /mcp | {"method": 7} | post-mcp
POST /../../x | {"tool_id": "../\u0000\u00e9/y"} | post-------x-------y
GET /of/57/letters/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx |  | get-of-57-letters-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"#;

#[test]
fn files_are_named_after_the_method_the_path_and_the_tool() {
    let folder = std::env::temp_dir().join(format!("names-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let server = Server::new(Toolkit::new([]).unwrap());
    let (_, app) = crate::assemble::assemble(server, FIXED, FIXED);
    let recorder = || Recorder {
        folder: folder.clone(),
        engine: Arc::clone(&app.engine),
        last_number: AtomicUsize::new(11),
    };
    let mut last = Value::Null;
    for row in FILES.lines() {
        let [request, body, name] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let (method, path) = request.split_once(' ').unwrap();
        let http = json!({"method": method, "path": path});
        last = json!({"requestContext": {"http": http}, "body": body});
        let file = recorder().write(&last, &ok(), &json!({})).unwrap();
        assert_eq!(file, folder.join(format!("0012-{name}.json")));
        assert!(file.with_extension("expected.json").exists(), "{name}");
    }
    // A recording continues after the highest number, and an earlier one stays.
    fs::write(folder.join("notes.txt"), "").unwrap();
    assert_eq!(last_number_in(&folder).unwrap(), 12);
    assert!(recorder().write(&last, &ok(), &json!({})).is_err());
    fs::remove_dir_all(&folder).unwrap();
}

fn recorded(mut body: Value) -> (Value, Redaction) {
    let redaction = redaction_of(&take_secrets(&mut body));
    (redacted(body, &redaction), redaction)
}

/// Bodies, each with what is recorded of it; `null` if that is the same.
const BODIES: &str = r#"[
    [{"tool_id": "A.B", "call_id": "of marked", "input": {"x-marked": 1, "pin": 123456, "page": 12, "list": [1, 2]},
      "context": {"secrets": [{"id": "K", "value": "marked"}, {"id": "PIN", "value": 123456}]}},
     {"tool_id": "A.B", "call_id": "of VALUE_OF_K", "input": {"x-VALUE_OF_K": 1, "pin": 0, "page": 12, "list": [1, 2]},
      "context": {"secrets": [{"id": "K", "value": "VALUE_OF_K"}, {"id": "PIN", "value": 0}]}}],
    [{"tool_id": "Trips.Plan", "input": {"a": "a plan"}, "context": {"secrets": [{"id": "K", "value": "a"}]}},
     {"tool_id": "Trips.Plan", "input": {"a": "a plan"}, "context": {"secrets": [{"id": "K", "value": "VALUE_OF_K"}]}}],
    [{"context": {"secrets": {"K": "marked"}}}, {"context": {"secrets": {"K": "VALUE_OF_?"}}}],
    [{"context": {"secrets": ["marked"]}}, {"context": {"secrets": ["VALUE_OF_?"]}}],
    [{"secrets": "marked"}, {"secrets": "VALUE_OF_?"}],
    [{"secrets": [{"name": "K", "secret": "marked"}]}, {"secrets": [{"name": "VALUE_OF_?", "secret": "VALUE_OF_?"}]}],
    [{"context": {"authorization": [{"id": "google", "token": {"access_token": "marked"}}]}},
     {"context": {"authorization": [{"id": "google", "token": {"access_token": "TOKEN_OF_google"}}]}}],
    [{"context": 5, "request": {"context": []}}, null],
    [{"context": {"secrets": null}, "request": {"context": "x"}}, null]
]"#;

#[test]
fn secrets_in_any_place_are_replaced_and_nothing_is_added() {
    let rows: Vec<(Value, Value)> = serde_json::from_str(BODIES).unwrap();
    for (body, expected) in rows {
        let expected = if expected.is_null() {
            body.clone()
        } else {
            expected
        };
        assert_eq!(recorded(body).0, expected);
    }
}

#[test]
fn secrets_of_any_kind_are_replaced_in_the_response() {
    let key = "-----BEGIN\n\"marked\\\"\n";
    let secrets = json!([{"id": "PEM", "value": key}, {"id": "EMPTY", "value": ""}, {"value": 7}]);
    let (_, redaction) = recorded(json!({"request": {"context": {"secrets": secrets}}}));
    let response = json!({"error": {"message": format!("bad key {key}!")}});
    let response = redacted(response, &redaction);
    assert_eq!(response["error"]["message"], "bad key VALUE_OF_PEM!");
}
