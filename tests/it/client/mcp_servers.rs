//! The MCP client against servers that behave unlike ours: streams, sessions, pages, and errors.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures_util::{StreamExt, stream};
use lambda_tools::client::{
    ClientError, ClientOptions,
    mcp::{CallOutcome, CallRequest, InputRequest, InputResponse, McpClient},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{FakeRequest, FakeServer, JSON, answer, discovery, now, result, soon};

const EVENTS: &[(&str, &str)] = &[("content-type", "text/event-stream; charset=utf-8")];
const SOON: &[(&str, &str)] = &[("retry-after", "0")];

fn client(server: &FakeServer) -> McpClient {
    super::mcp(&server.url(), ClientOptions::default())
}

fn call() -> CallRequest {
    CallRequest::new("tool").input(json!({"a": 1}))
}

/// Returns the methods that a server received, in order.
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

fn call_id(request: &FakeRequest) -> String {
    let message = request.message();
    let id = message["params"]["_meta"]["lambda-tools/call-id"].as_str();
    assert_eq!(request.header("idempotency-key"), id);
    id.unwrap().to_owned()
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

/// Starts a modern server whose calls are answered by `respond`, which receives the number of the
/// call.
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
    let count = Arc::new(AtomicUsize::new(0));
    FakeServer::start(move |_, request| {
        now(match request.message()["method"].as_str().unwrap() {
            "server/discover" => {
                let mut discovery = discovery();
                discovery["_meta"] = meta.clone();
                result(&request, &discovery)
            }
            "tools/list" => result(&request, &json!({"tools": tools})),
            _ => respond(count.fetch_add(1, Relaxed), &request),
        })
    })
    .await
}

#[tokio::test]
async fn requests_carry_their_revision_the_call_id_and_the_credentials() {
    let server = modern(|_, request| result(request, &text("15"))).await;
    let client = super::mcp(&server.url(), ClientOptions::default().api_key("key"));
    let value = client.call(&call().call_id("id-1")).await.unwrap().outcome;
    assert_eq!(value.value(), Some(json!("15")));
    let sent = calls(&server).pop().unwrap();
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/mcp"));
    assert_eq!(call_id(&sent), "id-1");
    for (name, expected) in [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("authorization", "Bearer key"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "tool"),
    ] {
        assert_eq!(sent.header(name), Some(expected), "{name}");
    }
    let params = &sent.message()["params"];
    assert_eq!(params["arguments"], json!({"a": 1}));
    let meta = |key: &str| params["_meta"][format!("io.modelcontextprotocol/{key}")].clone();
    assert_eq!(meta("protocolVersion"), "2026-07-28");
    assert_eq!(meta("clientInfo")["name"], "lambda_tools");
    let forms_and_urls = json!({"elicitation": {"form": {}, "url": {}}});
    assert_eq!(meta("clientCapabilities"), forms_and_urls);
    client.clone().tools().await.unwrap();
    let expected = ["server/discover", "tools/call", "tools/list"];
    assert_eq!(methods(&server), expected, "clones share the connection");
}

/// Responds like a server with sessions that knows no modern request. The session ends after the
/// first call.
fn legacy(status: u16, number: usize, request: &FakeRequest) -> Response {
    let session = request.header("mcp-session-id");
    let message = request.message();
    match (message["method"].as_str().unwrap(), session) {
        ("server/discover", None) => {
            let detail = json!({"code": -32000, "message": "Bad Request: no valid session"});
            rpc_error(request, status, &detail)
        }
        ("initialize", None) => {
            assert_eq!(message["params"]["capabilities"], json!({}));
            let session = format!("session-{number}");
            let headers = [JSON[0], ("mcp-session-id", &*session)];
            let result = json!({"protocolVersion": "2025-03-26", "capabilities": {},
                "serverInfo": {"name": "Old", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            answer(200, &headers, body.to_string())
        }
        ("notifications/initialized", Some(_)) => answer(202, &[], ""),
        ("tools/call", Some("session-1")) if number > 3 => answer(404, &[], "no such session"),
        ("tools/call", Some(_)) => result(request, &text("ok")),
        _ => answer(400, &[], ""),
    }
}

#[tokio::test]
async fn a_legacy_server_gets_initialize_and_its_session() {
    for status in [400, 404, 405] {
        let respond = move |number, request: FakeRequest| now(legacy(status, number, &request));
        let server = FakeServer::start(respond).await;
        let client = super::mcp(&server.url(), super::once());
        let described = client.server().await.unwrap();
        assert_eq!(described.revision, "2025-03-26", "the server's choice");
        assert_eq!(described.name.as_deref(), Some("Old"));
        for _ in 0..3 {
            let reply = client.call(&call()).await.unwrap();
            assert_eq!(
                (reply.attempts, reply.outcome.value()),
                (1, Some(json!("ok")))
            );
        }
        let calls = calls(&server);
        let sessions: Vec<_> = calls.iter().map(|it| it.header("mcp-session-id")).collect();
        let (first, second) = (Some("session-1"), Some("session-5"));
        assert_eq!(sessions, [first, first, second, second]);
        let version = |it: &FakeRequest| it.header("mcp-protocol-version") == Some("2025-03-26");
        assert!(calls.iter().all(version));
        let ids: Vec<_> = calls.iter().map(call_id).collect();
        assert_eq!(ids[1], ids[2], "one call on two sessions");
    }
}

#[tokio::test]
async fn only_a_response_that_says_so_means_a_legacy_server() {
    for (status, body) in [
        (401, r#"{"message": "no"}"#),
        (403, "<html>"),
        (500, ""),
        (200, "<html>"),
        (
            400,
            r#"{"error": {"code": -32020, "message": "header mismatch"}}"#,
        ),
        (
            400,
            r#"{"error": {"code": -32022, "message": "no", "data": {"supported": ["2030-01-01"]}}}"#,
        ),
    ] {
        let server = FakeServer::fixed(status, JSON, body).await;
        let client = super::mcp(&server.url(), super::once());
        let error = client.tools().await.unwrap_err();
        let is_expected = match (status, body) {
            (401, _) => matches!(error, ClientError::Unauthorized { .. }),
            (200, _) => matches!(error, ClientError::Unreadable(_)),
            (400, body) if body.contains("-32022") => matches!(error, ClientError::Unsupported(_)),
            (400, _) => matches!(error, ClientError::Rejected { code: -32020, .. }),
            _ => matches!(error, ClientError::Status { status: it, .. } if it == status),
        };
        assert!(is_expected, "{status} {body}: {error:?}");
        assert_eq!(methods(&server), ["server/discover"], "{status} {body}");
    }
}

#[tokio::test]
async fn a_response_is_read_from_a_stream_that_stays_open() {
    let server = FakeServer::start(|_, request| {
        let message = request.message();
        let result = match message["method"].as_str() {
            Some("server/discover") => discovery(),
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
    let reply = soon(client(&server).call(&call())).await.unwrap();
    assert_eq!(reply.outcome.value(), Some(json!("15")));
}

#[test]
fn a_client_connects_again_when_the_runtime_of_its_connection_has_ended() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let servers = runtime();
    let server = servers.block_on(modern(|number, request| match number {
        // The runtime ends during this call.
        1 => answer(
            200,
            EVENTS,
            Body::from_stream(stream::pending::<Result<Bytes, ClientError>>()),
        ),
        _ => result(request, &text("ok")),
    }));
    let client = client(&server);
    let call_once = || async { soon(client.call(&call())).await };
    let first = runtime();
    let reply = first.block_on(call_once()).unwrap();
    assert_eq!(reply.outcome.value(), Some(json!("ok")));
    let second = runtime();
    let end = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        first.shutdown_background();
    });
    let error = second.block_on(call_once()).unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
    end.join().unwrap();
    let reply = second.block_on(call_once()).unwrap();
    assert_eq!(reply.outcome.value(), Some(json!("ok")));
    let _servers = servers.enter();
    drop(server);
}

/// HTML, 9.2.6. As an exception, the last event counts although no empty line follows it.
#[tokio::test]
async fn events_of_other_types_are_skipped_and_the_last_one_counts() {
    for events in [
        "event: other\ndata: WRONG\n\ndata: RIGHT",
        "event: other\r\ndata:WRONG\r\n\r\nevent: message\r\ndata:RIGHT\r\n\r\n",
        "\u{feff}event: other\rdata: WRONG\r\rdata: RIGHT\r\r",
        "unknown: 1\nunknown\nid: 1\nid: 2\nretry: soon\nevent: other\nevent\n: a\ndata\ndata: RIGHT\n\n",
    ] {
        let server = modern(move |_, request| {
            let id = &request.message()["id"];
            let response = |it| json!({"jsonrpc": "2.0", "id": id, "result": text(it)}).to_string();
            let events = events.replace("WRONG", &response("wrong"));
            answer(200, EVENTS, events.replace("RIGHT", &response("right")))
        })
        .await;
        let reply = client(&server).call(&call()).await.unwrap();
        assert_eq!(reply.outcome.value(), Some(json!("right")), "{events:?}");
    }
}

#[tokio::test]
async fn a_stream_is_limited_and_must_contain_the_response() {
    let endless = modern(|_, _| {
        let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![b':'; 1 << 16]));
        let chunks = stream::iter((0..).map(move |_| chunk()));
        answer(200, EVENTS, Body::from_stream(chunks))
    })
    .await;
    let limited = ClientOptions::default().max_response_size(1 << 20);
    let error = super::mcp(&endless.url(), limited).call(&call()).await;
    let error = error.unwrap_err();
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
            _ => result(request, &text("ok")),
        })
        .await;
        let reply = client(&server).call(&call()).await.unwrap();
        assert_eq!(
            (reply.attempts, reply.outcome.value()),
            (3, Some(json!("ok")))
        );
        let ids: Vec<_> = calls(&server).iter().map(call_id).collect();
        assert_eq!((ids.len(), HashSet::<_>::from_iter(ids).len()), (3, 1));
    }
    // A server that is busy before it says which revision it speaks.
    let server = FakeServer::start(|number, request| {
        now(match number {
            0 => answer(503, SOON, ""),
            1 => result(&request, &discovery()),
            _ => result(&request, &text("ok")),
        })
    })
    .await;
    assert_eq!(client(&server).call(&call()).await.unwrap().attempts, 2);
}

#[tokio::test]
async fn a_call_that_may_have_run_is_repeated_only_if_the_server_recognizes_it() {
    let broken = || {
        let parts = [
            Ok(Bytes::from_static(b"{")),
            Err(std::io::Error::other("broken")),
        ];
        answer(200, JSON, Body::from_stream(stream::iter(parts)))
    };
    let failures: [fn() -> Response; 3] = [
        broken,
        || answer(502, &[], "a gateway"),
        || answer(200, EVENTS, ""),
    ];
    let ours = json!({"lambda-tools/recognizes-call-ids": true});
    for (meta, expected) in [(json!({}), 1), (ours, 2)] {
        for failure in failures {
            let respond = move |number, request: &FakeRequest| match number {
                0 => failure(),
                _ => result(request, &text("ok")),
            };
            let server = modern_with(meta.clone(), json!([]), respond).await;
            let is_ok = client(&server).call(&call()).await.is_ok();
            assert_eq!(is_ok, expected == 2, "{meta}");
            let ids: Vec<_> = calls(&server).iter().map(call_id).collect();
            assert_eq!(ids.len(), expected, "{meta}");
            assert_eq!(HashSet::<_>::from_iter(ids).len(), 1, "one call");
        }
    }
}

#[tokio::test]
async fn all_pages_of_a_list_are_read() {
    let server = FakeServer::start(|_, request| {
        let message = request.message();
        let cursor = message["params"]["cursor"].as_str();
        // An empty cursor is a cursor like any other.
        let number = cursor.map_or(0, |it| it.len() + 1);
        let tools = json!([{"name": format!("tool{number}"), "inputSchema": {"type": "object"}}]);
        let mut page = json!({"tools": tools});
        if number < 2 {
            page["nextCursor"] = "x".repeat(number).into();
        }
        now(match message["method"].as_str() {
            Some("server/discover") => result(&request, &discovery()),
            _ => result(&request, &page),
        })
    })
    .await;
    let tools = client(&server).tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["tool0", "tool1", "tool2"]);
}

#[tokio::test]
async fn a_request_for_input_is_answered_by_repeating_the_call() {
    let server = modern(|_, request| {
        let params = &request.message()["params"];
        if params["requestState"] == "state-1" {
            assert_eq!(params["name"], "tool");
            return result(request, &text(&params["inputResponses"].to_string()));
        }
        let form = json!({"method": "elicitation/create", "params": {"mode": "form",
            "message": "Who are you?", "requestedSchema": {"type": "object", "properties": {}}}});
        result(
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
    let sent = client.run::<String>(&answered).await.unwrap();
    let expected = json!({"name": {"action": "accept", "content": {"name": "marked"}},
        "other": {"action": "decline"}});
    assert_eq!(serde_json::from_str::<Value>(&sent).unwrap(), expected);
}

#[tokio::test]
async fn arguments_are_repeated_in_the_headers_that_the_list_names() {
    let property = |kind: &str| json!({"type": kind, "x-mcp-header": "A"});
    let tools = json!([{"name": "tool", "inputSchema": {"properties": {"a": property("integer")}}},
        {"name": "invalid", "inputSchema": {"properties": {"a": property("number")}}}]);
    let server = modern_with(json!({}), tools, |_, request| {
        result(request, &text(request.header("mcp-param-a").unwrap()))
    })
    .await;
    let client = client(&server);
    let tools = client.tools().await.unwrap();
    assert_eq!(tools.len(), 1, "a tool with an invalid header is left out");
    let outcome = client.call(&call()).await.unwrap().outcome;
    assert_eq!(outcome.value(), Some(json!("1")));
}

#[tokio::test]
async fn an_object_with_one_field_is_not_damaged() {
    #[derive(Deserialize)]
    struct Wrapped {
        result: f64,
    }
    let server = modern(|_, request| {
        let five = json!({"content": [], "structuredContent": {"result": 5}});
        result(request, &five)
    })
    .await;
    let client = client(&server);
    let object = json!({"result": 5});
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
            let error = json!({"code": -32602, "message": "Unknown tool: tool"});
            rpc_error(request, status, &error)
        })
        .await;
        match client(&server).call(&call()).await {
            Ok(reply) => assert!(expected && reply.outcome.message() == "Unknown tool: tool"),
            Err(error) => assert!(!expected && error.to_string().contains("Unknown tool")),
        }
    }
}

#[tokio::test]
async fn a_malformed_response_is_an_error_and_not_a_panic() {
    let html = &[("content-type", "text/html")][..];
    for (headers, body) in [
        (JSON, r#"{"jsonrpc": "2.0", "id": ID, "resu"#),
        (JSON, "[]"),
        (JSON, r#"{"id": 4711, "result": {"content": []}}"#),
        (html, r#"{"id": ID, "result": {"content": []}}"#),
        (JSON, r#"{"jsonrpc": "2.0", "id": ID, "result": 5}"#),
        (
            JSON,
            r#"{"jsonrpc": "2.0", "id": ID, "result": {"tools": {}}}"#,
        ),
        (
            JSON,
            r#"{"jsonrpc": "2.0", "id": ID, "result": {"requestState": 5, "content": [5]}}"#,
        ),
        (
            JSON,
            r#"{"jsonrpc": "2.0", "id": ID, "error": {"code": "x"}}"#,
        ),
        (
            JSON,
            r#"{"jsonrpc": "2.0", "id": ID, "result": {"resultType": "new", "content": []}}"#,
        ),
    ] {
        let respond = move |request: &FakeRequest| {
            let id = request.message()["id"].to_string();
            answer(200, headers, body.replace("ID", &id))
        };
        let server = modern(move |_, request| respond(request)).await;
        let call = soon(client(&server).call(&call())).await;
        let list = FakeServer::start(move |_, request| {
            now(match request.message()["method"].as_str() {
                Some("server/discover") => result(&request, &discovery()),
                _ => respond(&request),
            })
        })
        .await;
        let list = soon(client(&list).tools()).await.map(drop);
        let start = FakeServer::start(move |_, request| now(respond(&request))).await;
        let start = soon(client(&start).server()).await.map(drop);
        for result in [call.map(drop), list, start] {
            assert!(
                matches!(result, Err(ClientError::Unreadable(_))),
                "{body}: {result:?}"
            );
        }
    }
}
