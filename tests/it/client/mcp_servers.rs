//! The MCP client against servers that behave unlike ours: streams, sessions, pages, and errors.

use std::time::{Duration, Instant};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures_util::{StreamExt, stream};
use lambda_tools::client::{
    ClientError,
    mcp::{CallOutcome, CallRequest, InputRequest, InputResponse, McpClient, McpRevision},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{FakeRequest, FakeServer, JSON, ResponseFuture, answer, now, soon};

const EVENTS: &[(&str, &str)] = &[("content-type", "text/event-stream; charset=utf-8")];
const SOON: &[(&str, &str)] = &[("retry-after", "0")];

fn client(server: &FakeServer) -> McpClient {
    McpClient::new(&server.url()).unwrap()
}

fn call() -> CallRequest {
    CallRequest::new("tool").input(json!({"a": 1}))
}

impl FakeRequest {
    fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|it| it.to_str().unwrap())
    }
}

/// The methods that a server received, in order.
fn methods(server: &FakeServer) -> Vec<String> {
    let method = |it: FakeRequest| it.message()["method"].as_str().unwrap().to_owned();
    server.requests().into_iter().map(method).collect()
}

fn calls(server: &FakeServer) -> Vec<FakeRequest> {
    let requests = server.requests().into_iter();
    requests
        .filter(|it| it.message()["method"] == "tools/call")
        .collect()
}

fn reply(request: &FakeRequest, result: &Value) -> Response {
    let id = &request.message()["id"];
    answer(
        200,
        JSON,
        json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
    )
}

fn rpc_error(request: &FakeRequest, status: u16, error: &Value) -> Response {
    let id = &request.message()["id"];
    answer(
        status,
        JSON,
        json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string(),
    )
}

fn text(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

/// A modern server whose calls are answered by `respond`, which receives the number of the call.
async fn modern(
    respond: impl Fn(usize, &FakeRequest) -> Response + Clone + Send + Sync + 'static,
) -> FakeServer {
    modern_with(json!({}), json!([]), respond).await
}

async fn modern_with(
    meta: Value,
    tools: Value,
    respond: impl Fn(usize, &FakeRequest) -> Response + Clone + Send + Sync + 'static,
) -> FakeServer {
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    FakeServer::start(move |_, request| {
        let message = request.message();
        now(match message["method"].as_str().unwrap() {
            "server/discover" => {
                let discovery = json!({"supportedVersions": ["2026-07-28"], "_meta": meta});
                reply(&request, &discovery)
            }
            "tools/list" => reply(&request, &json!({"tools": tools})),
            _ => {
                let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                respond(number, &request)
            }
        })
    })
    .await
}

/// A connection that ends within the body.
fn broken(headers: &[(&str, &str)]) -> Response {
    let parts = [
        Ok(Bytes::from_static(b"{")),
        Err(std::io::Error::other("broken")),
    ];
    answer(200, headers, Body::from_stream(stream::iter(parts)))
}

#[tokio::test]
async fn modern_requests_carry_their_revision_and_the_headers_that_repeat_the_body() {
    let server = modern(|_, request| reply(request, &text("15"))).await;
    let client = client(&server).api_key("key");
    for (name, header) in [("tool", "tool"), ("nö", "=?base64?bsO2?=")] {
        let call = CallRequest::new(name)
            .input(json!({"a": 1}))
            .call_id("id-1");
        assert_eq!(
            client.call(&call).await.unwrap().outcome.value(),
            Some(json!("15"))
        );
        let sent = calls(&server).pop().unwrap();
        assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/mcp"));
        for (name, expected) in [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("authorization", "Bearer key"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", header),
            ("idempotency-key", "id-1"),
        ] {
            assert_eq!(sent.header(name), Some(expected), "{name}");
        }
        let mut message = sent.message();
        assert!(message["id"].take().is_u64());
        let version = env!("CARGO_PKG_VERSION");
        let expected = json!({"jsonrpc": "2.0", "id": null, "method": "tools/call", "params": {
            "name": name, "arguments": {"a": 1}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "lambda_tools", "version": version},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
                "lambda-tools/call-id": "id-1"}}});
        assert_eq!(message, expected);
    }
    client.clone().tools().await.unwrap();
    let expected = ["server/discover", "tools/call", "tools/call", "tools/list"];
    assert_eq!(methods(&server), expected, "clones share the connection");
    let ids: Vec<_> = server
        .requests()
        .iter()
        .map(|it| it.message()["id"].as_u64())
        .collect();
    assert_eq!(
        ids.len(),
        ids.iter().collect::<std::collections::HashSet<_>>().len()
    );
}

/// A server with sessions that knows no modern request. The session ends after the first call.
fn legacy(status: u16, number: usize, request: &FakeRequest) -> Response {
    let session = request.header("mcp-session-id");
    match (request.message()["method"].as_str().unwrap(), session) {
        ("server/discover", None) => {
            let detail = json!({"code": -32000, "message": "Bad Request: no valid session"});
            rpc_error(request, status, &detail)
        }
        ("initialize", None) => {
            let session = format!("session-{number}");
            let headers = [
                ("content-type", "application/json"),
                ("mcp-session-id", &session),
            ];
            let result = json!({"protocolVersion": "2025-03-26", "capabilities": {},
                "serverInfo": {"name": "Old", "version": "1"}});
            let id = &request.message()["id"];
            let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
            answer(200, &headers, body.to_string())
        }
        ("notifications/initialized", Some(_)) => answer(202, &[], ""),
        ("tools/call", Some("session-1")) if number > 3 => answer(404, &[], "no such session"),
        ("tools/call", Some(_)) => reply(request, &text("ok")),
        _ => answer(400, &[], ""),
    }
}

#[tokio::test]
async fn a_legacy_server_gets_initialize_and_its_session() {
    for status in [400, 404, 405] {
        let respond = move |number, request: FakeRequest| now(legacy(status, number, &request));
        let server = FakeServer::start(respond).await;
        let client = client(&server).attempts(1);
        let described = client.server().await.unwrap();
        assert_eq!(
            described.revision,
            McpRevision::V2025_03_26,
            "the server's choice"
        );
        assert_eq!(described.name.as_deref(), Some("Old"));
        for _ in 0..3 {
            let reply = client.call(&call()).await.unwrap();
            assert_eq!(
                (reply.attempts, reply.outcome.value()),
                (1, Some(json!("ok")))
            );
        }
        let expected = [
            ("server/discover", None, Some("2026-07-28")),
            ("initialize", None, None),
            (
                "notifications/initialized",
                Some("session-1"),
                Some("2025-03-26"),
            ),
            ("tools/call", Some("session-1"), Some("2025-03-26")),
            ("tools/call", Some("session-1"), Some("2025-03-26")),
            ("server/discover", None, Some("2026-07-28")),
            ("initialize", None, None),
            (
                "notifications/initialized",
                Some("session-6"),
                Some("2025-03-26"),
            ),
            ("tools/call", Some("session-6"), Some("2025-03-26")),
            ("tools/call", Some("session-6"), Some("2025-03-26")),
        ];
        let requests = server.requests();
        let requests = requests.iter().zip(methods(&server));
        let requests: Vec<_> = requests
            .map(|(it, method)| {
                (
                    method,
                    it.header("mcp-session-id"),
                    it.header("mcp-protocol-version"),
                )
            })
            .collect();
        let expected =
            expected.map(|(method, session, version)| (method.to_owned(), session, version));
        assert_eq!(requests, expected);
        let sent = &calls(&server)[0];
        assert!(sent.header("mcp-name").is_none());
        let meta = &sent.message()["params"]["_meta"];
        assert_eq!(
            meta.as_object().unwrap().len(),
            1,
            "the call id alone: {meta}"
        );
        let ids: Vec<_> = calls(&server).iter().map(call_id).collect();
        assert_eq!(ids[1], ids[2], "one call on two sessions");
    }
}

fn call_id(request: &FakeRequest) -> String {
    let message = request.message();
    let id = message["params"]["_meta"]["lambda-tools/call-id"]
        .as_str()
        .unwrap();
    assert_eq!(request.header("idempotency-key"), Some(id));
    id.to_owned()
}

#[tokio::test]
async fn a_session_that_is_never_accepted_ends_with_an_error() {
    let server = FakeServer::start(|number, request| {
        now(match request.message()["method"].as_str() {
            Some("tools/list") => answer(404, &[], ""),
            _ => legacy(400, number, &request),
        })
    })
    .await;
    let error = client(&server).tools().await.unwrap_err();
    assert!(
        matches!(error, ClientError::Status { status: 404, .. }),
        "{error}"
    );
    let lists = methods(&server)
        .iter()
        .filter(|it| *it == "tools/list")
        .count();
    assert_eq!(lists, 2);
}

#[tokio::test]
async fn only_a_response_that_says_so_means_a_legacy_server() {
    for (status, body) in [
        (401, r#"{"message": "no"}"#),
        (403, "<html>"),
        (406, ""),
        (500, ""),
        (503, ""),
        (200, "<html>"),
        (400, r#"{"error": {"code": -32020, "message": "no"}}"#),
        (400, r#"{"error": {"code": -32021, "message": "no"}}"#),
        (
            400,
            r#"{"error": {"code": -32022, "message": "no", "data": {"supported": ["2030-01-01"]}}}"#,
        ),
    ] {
        let server = FakeServer::fixed(status, &[], body).await;
        let error = client(&server).attempts(1).tools().await.unwrap_err();
        let is_expected = match (status, body) {
            (401, _) => matches!(error, ClientError::Unauthorized { .. }),
            (200, _) => matches!(error, ClientError::Unreadable(_)),
            (400, body) if body.contains("-32022") => matches!(error, ClientError::Unsupported(_)),
            (400, _) => matches!(error, ClientError::Rejected { .. }),
            _ => matches!(error, ClientError::Status { status: it, .. } if it == status),
        };
        assert!(is_expected, "{status} {body}: {error:?}");
        assert_eq!(methods(&server), ["server/discover"], "{status} {body}");
    }
    let server = FakeServer::fixed(404, &[], "").await;
    let pinned = client(&server).revision(McpRevision::V2026_07_28);
    assert!(matches!(
        pinned.server().await,
        Err(ClientError::Unsupported(_))
    ));
    assert_eq!(methods(&server), ["server/discover"]);
    let pinned = client(&server).revision(McpRevision::V2025_06_18);
    assert!(matches!(
        pinned.server().await,
        Err(ClientError::Status { status: 404, .. })
    ));
    assert_eq!(methods(&server), ["server/discover", "initialize"]);
}

#[tokio::test]
async fn a_response_is_read_from_a_stream_that_stays_open() {
    let server = FakeServer::start(|_, request| {
        let message = request.message();
        let result = match message["method"].as_str() {
            Some("server/discover") => json!({"supportedVersions": ["2026-07-28"]}),
            _ => text("15"),
        };
        let other = json!({"jsonrpc": "2.0", "id": 4711, "result": text("wrong")});
        let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let events = format!(
            ": open\r\n\r\nevent: message\r\ndata: {{\"method\": \"notifications/progress\"}}\r\n\r\n\
             data: {other}\r\n\r\nid: 2\r\ndata: {response}\r\n\r\n"
        );
        let parts: Vec<_> = events.as_bytes().chunks(17).map(Bytes::copy_from_slice).collect();
        let parts = stream::iter(parts.into_iter().map(Ok::<_, std::io::Error>));
        now(answer(200, EVENTS, Body::from_stream(parts.chain(stream::pending()))))
    })
    .await;
    let begun = Instant::now();
    let reply = soon(client(&server).call(&call())).await.unwrap();
    assert_eq!(reply.outcome.value(), Some(json!("15")));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_stream_is_limited_and_must_contain_the_response() {
    let endless = modern(|_, _| {
        let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![b':'; 1 << 16]));
        answer(
            200,
            EVENTS,
            Body::from_stream(stream::iter((0..).map(move |_| chunk()))),
        )
    })
    .await;
    let error = client(&endless)
        .max_response_size(1 << 20)
        .call(&call())
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { .. }), "{error}");
    assert_eq!(calls(&endless).len(), 1);
    let ended = modern(|_, _| answer(200, EVENTS, "data: {}\n\n")).await;
    let error = client(&ended).call(&call()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
    assert_eq!(calls(&ended).len(), 1, "the tool may have run");
}

#[tokio::test]
async fn a_server_that_asks_for_it_gets_the_same_call_again() {
    for (status, headers) in [(503, SOON), (500, SOON), (429, &[]), (408, &[])] {
        let server = modern(move |number, request| match number {
            0 | 1 => answer(status, headers, "busy"),
            _ => reply(request, &text("ok")),
        })
        .await;
        let reply = client(&server).call(&call()).await.unwrap();
        assert_eq!(
            (reply.attempts, reply.outcome.value()),
            (3, Some(json!("ok")))
        );
        let ids: Vec<_> = calls(&server).iter().map(call_id).collect();
        assert!(
            ids.len() == 3 && ids[0] == ids[1] && ids[1] == ids[2],
            "{ids:?}"
        );
    }
    // A server that is busy before it says which revision it speaks.
    let server = FakeServer::start(|number, request| {
        now(match number {
            0 => answer(503, SOON, ""),
            1 => reply(&request, &json!({"supportedVersions": ["2026-07-28"]})),
            _ => reply(&request, &text("ok")),
        })
    })
    .await;
    assert_eq!(client(&server).call(&call()).await.unwrap().attempts, 2);
}

#[tokio::test]
async fn a_call_that_may_have_run_is_repeated_only_if_that_is_safe() {
    let tools = |hints: Value| json!([{"name": "tool", "inputSchema": {}, "annotations": hints}]);
    let ours = json!({"lambda-tools/recognizes-call-ids": true});
    for (meta, tools, expected) in [
        (json!({}), tools(json!({})), 1),
        (json!({}), tools(json!({"destructiveHint": false})), 1),
        (json!({}), tools(json!({"idempotentHint": true})), 2),
        (json!({}), tools(json!({"readOnlyHint": true})), 2),
        (ours, tools(json!({})), 2),
    ] {
        let failures: [fn() -> Response; 3] = [
            || broken(JSON),
            || answer(502, &[], "a gateway"),
            || answer(200, EVENTS, ""),
        ];
        for failure in failures {
            let server =
                modern_with(
                    meta.clone(),
                    tools.clone(),
                    move |number, request| match number {
                        0 => failure(),
                        _ => reply(request, &text("ok")),
                    },
                )
                .await;
            let client = client(&server);
            client.tools().await.unwrap();
            assert_eq!(
                client.call(&call()).await.is_ok(),
                expected == 2,
                "{meta} {tools}"
            );
            assert_eq!(calls(&server).len(), expected, "{meta} {tools}");
        }
    }
}

#[tokio::test]
async fn all_pages_of_a_list_are_read_and_endless_ones_are_not() {
    let page = |request: &FakeRequest, next: fn(usize) -> Option<String>| {
        let message = request.message();
        if message["method"] == "server/discover" {
            return reply(request, &json!({"supportedVersions": ["2026-07-28"]}));
        }
        let cursor = message["params"]["cursor"].as_str();
        let number = cursor.map_or(0, |it| it.len() + 1);
        let tools = json!([{"name": format!("tool{number}"), "inputSchema": {"type": "object"}}]);
        reply(
            request,
            &json!({"tools": tools, "nextCursor": next(number)}),
        )
    };
    // An empty cursor is a cursor like any other.
    let three = |number| (number < 2).then(|| "x".repeat(number));
    let server = FakeServer::start(move |_, request| now(page(&request, three))).await;
    let tools = client(&server).tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["tool0", "tool1", "tool2"]);
    for (next, requests) in [
        ((|_| Some("again".to_owned())) as fn(usize) -> _, 3),
        (|number| Some("x".repeat(number)), 1001),
    ] {
        let server = FakeServer::start(move |_, request| now(page(&request, next))).await;
        let error = client(&server).tools().await.unwrap_err();
        assert!(matches!(error, ClientError::Unreadable(_)), "{error}");
        assert_eq!(server.requests().len(), requests);
    }
}

#[tokio::test]
async fn a_request_for_input_is_answered_by_repeating_the_call() {
    let server = modern(|_, request| {
        let params = &request.message()["params"];
        if params["requestState"] == "state-1" {
            assert_eq!(params["name"], "tool");
            return reply(request, &text(&params["inputResponses"].to_string()));
        }
        let form = json!({"method": "elicitation/create", "params": {"mode": "form",
            "message": "Who are you?", "requestedSchema": {"type": "object"}}});
        reply(
            request,
            &json!({"resultType": "input_required", "requestState": "state-1",
            "inputRequests": {"name": form}}),
        )
    })
    .await;
    let client = client(&server);
    let first = client.call(&call()).await.unwrap();
    let CallOutcome::InputRequired(input) = first.outcome else {
        panic!("{:?}", first.outcome)
    };
    assert!(
        matches!(&input.requests[..], [InputRequest::Form { key, message, .. }]
        if key == "name" && message == "Who are you?")
    );
    let answered = call()
        .call_id(first.call_id)
        .input_response("name", InputResponse::Content(json!({"name": "marked"})))
        .input_response("other", InputResponse::Decline)
        .request_state(input.request_state);
    assert!(!format!("{answered:?}").contains("marked"));
    let sent: Value = {
        let value = client.run::<String>(&answered).await.unwrap();
        serde_json::from_str(&value).unwrap()
    };
    let expected = json!({"name": {"action": "accept", "content": {"name": "marked"}},
        "other": {"action": "decline"}});
    assert_eq!(sent, expected);
    let legacy = FakeServer::start(|number, request| now(legacy(400, number, &request))).await;
    let error = McpClient::new(&legacy.url()).unwrap().call(&answered).await;
    assert!(matches!(error, Err(ClientError::Unsupported(_))));
    assert!(calls(&legacy).is_empty());
}

#[tokio::test]
async fn arguments_are_repeated_in_the_headers_that_the_list_names() {
    let property = |kind: &str| json!({"type": kind, "x-mcp-header": "A"});
    let tools = json!([{"name": "tool", "inputSchema": {"properties": {"a": property("integer")}}},
        {"name": "invalid", "inputSchema": {"properties": {"a": property("number")}}}]);
    let server = modern_with(json!({}), tools, |_, request| {
        if request.header("mcp-param-a") == Some("1") {
            return reply(request, &text("ok"));
        }
        rpc_error(
            request,
            400,
            &json!({"code": -32020, "message": "Header mismatch"}),
        )
    })
    .await;
    let client = client(&server);
    // The first call learns of the header from the server's error.
    assert_eq!(
        client.call(&call()).await.unwrap().outcome.value(),
        Some(json!("ok"))
    );
    assert_eq!(client.call(&call()).await.unwrap().attempts, 1);
    let expected = [
        "server/discover",
        "tools/call",
        "tools/list",
        "tools/call",
        "tools/call",
    ];
    assert_eq!(methods(&server), expected);
    let names: Vec<_> = client
        .tools()
        .await
        .unwrap()
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(
        names,
        ["tool"],
        "a tool with an invalid header must be left out"
    );
    let outcome = client
        .call(&CallRequest::new("tool"))
        .await
        .unwrap()
        .outcome;
    assert!(
        matches!(outcome, CallOutcome::ServerError(_)),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn an_object_with_one_field_is_not_damaged() {
    #[derive(Deserialize)]
    struct Wrapped {
        result: f64,
    }
    let server = modern(|_, request| {
        let result = json!({"content": [], "structuredContent": {"result": 5}});
        reply(request, &result)
    })
    .await;
    let client = client(&server);
    let object = json!({"result": 5});
    assert_eq!(
        client.call(&call()).await.unwrap().outcome.value(),
        Some(object.clone())
    );
    assert_eq!(client.run::<Value>(&call()).await.unwrap(), object);
    assert!((client.run::<Wrapped>(&call()).await.unwrap().result - 5.0).abs() < f64::EPSILON);
    assert!((client.run::<f64>(&call()).await.unwrap() - 5.0).abs() < f64::EPSILON);
    assert!(client.run::<bool>(&call()).await.is_err());
}

#[tokio::test]
async fn errors_are_outcomes_if_they_are_about_the_call() {
    for (status, expected) in [
        (200, true),
        (400, true),
        (404, true),
        (401, false),
        (403, false),
    ] {
        let server = modern(move |_, request| {
            rpc_error(
                request,
                status,
                &json!({"code": -32602, "message": "Unknown tool: tool"}),
            )
        })
        .await;
        match client(&server).call(&call()).await {
            Ok(reply) => assert!(expected && reply.outcome.message() == "Unknown tool: tool"),
            Err(error) => assert!(
                !expected && error.to_string().contains("Unknown tool"),
                "{error}"
            ),
        }
    }
}

#[tokio::test]
async fn a_malformed_response_is_an_error_and_not_a_panic() {
    let html = &[("content-type", "text/html")][..];
    for (headers, body) in [
        (JSON, r#"{"jsonrpc": "2.0", "id": 1, "resu"#),
        (JSON, ""),
        (JSON, "null"),
        (JSON, "[]"),
        (JSON, r#"{"id": 4711, "result": {"content": []}}"#),
        (JSON, r#"{"result": {"content": []}}"#),
        (html, r#"{"id": 1, "result": {"content": []}}"#),
    ] {
        let server = modern(move |_, _| answer(200, headers, body)).await;
        let error = client(&server).call(&call()).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Unreadable(_)),
            "{body}: {error:?}"
        );
    }
    for wrong in [
        json!({}),
        json!({"tools": {}}),
        json!({"tools": [{"name": 5}]}),
    ] {
        let server =
            FakeServer::start(move |_, request| -> ResponseFuture { now(reply(&request, &wrong)) })
                .await;
        let error = client(&server).tools().await.unwrap_err();
        assert!(matches!(error, ClientError::Unreadable(_)), "{error:?}");
    }
}
