//! The clients against servers that want their memory, their time or their credentials.

use std::{io::Read, process::Command, sync::Arc, time::Duration};

use lambda_tools::client::{
    ClientError, JwtSigner,
    mcp::{CallRequest, McpClient},
    opentool::{FunctionCall, OpenToolClient},
    oxp::{CallOutcome, OxpClient},
};
use serde_json::{Map, Value, json};

use super::{FakeRequest, FakeServer, JSON, answer, now, soon};

const MEGABYTE: usize = 1 << 20;
const KEY: &str = "key-of-the-agent";

fn message_of(request: &FakeRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}

/// The body of a reply over any of the protocols, whose value is the text of this JSON.
fn reply(request: &FakeRequest, value: &str) -> String {
    let message = message_of(request);
    let id = &message["id"];
    match message["method"].as_str() {
        Some("server/discover") => {
            let result = json!({"supportedVersions": ["2026-07-28"]});
            json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
        }
        Some("tools/call") => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"structuredContent":{value}}}}}"#)
        }
        Some(_) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"value":{value}}}}}"#),
        None => format!(r#"{{"call_id":"c","success":true,"value":{value}}}"#),
    }
}

#[tokio::test]
async fn values_are_counted_as_on_the_server() {
    let lists = |count: usize| format!("[{}0]", "[[[0]]],".repeat(count));
    // A response may have 52,428 values for each megabyte.
    for (count, is_read) in [(13_000, true), (13_200, false)] {
        for events in [false, true] {
            let server = FakeServer::start(move |_, request| {
                let is_mcp = request.path == "/mcp";
                let body = reply(&request, &lists(count));
                if events && is_mcp {
                    let stream = [("content-type", "text/event-stream")];
                    return now(answer(200, &stream, format!("data: {body}\n\n")));
                }
                now(answer(200, JSON, body))
            })
            .await;
            let call = CallRequest::new("tool");
            let oxp = OxpClient::new(&server.url()).unwrap().attempts(1);
            let oxp = oxp.max_response_size(MEGABYTE).call(&call).await;
            let mcp = McpClient::new(&server.url()).unwrap().attempts(1);
            let mcp = mcp.max_response_size(MEGABYTE).call(&call).await;
            let opentool = OpenToolClient::new(&server.url()).unwrap();
            let opentool = opentool.max_response_size(MEGABYTE);
            let opentool = opentool
                .call(&FunctionCall::new("c", "t", Map::new()))
                .await;
            assert_eq!(oxp.is_ok(), is_read, "{count}: {:?}", oxp.err());
            assert_eq!(mcp.is_ok(), is_read, "{count}: {:?}", mcp.err());
            assert_eq!(opentool.is_ok(), is_read, "{count}: {:?}", opentool.err());
            if let (Err(error), Err(other), Err(third)) = (oxp, mcp, opentool) {
                for text in [error.to_string(), other.to_string(), third.to_string()] {
                    assert!(text.contains("more than 52428 values"), "{text}");
                }
            }
        }
    }
}

/// A server whose list of tools never ends; each page has this tool, and takes this long.
async fn endless(tool: Value, time: Duration) -> FakeServer {
    FakeServer::start(move |number, request| {
        let message = message_of(&request);
        let result = match message["method"].as_str() {
            Some("server/discover") => json!({"supportedVersions": ["2026-07-28"]}),
            _ => json!({"tools": [tool], "nextCursor": number.to_string()}),
        };
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        Box::pin(async move {
            tokio::time::sleep(time).await;
            answer(200, JSON, body.to_string())
        })
    })
    .await
}

#[tokio::test]
async fn all_pages_of_a_list_share_one_deadline_and_one_budget() {
    let client = |server: &FakeServer| McpClient::new(&server.url()).unwrap();
    let tool = |schema: Value| json!({"name": "tool", "inputSchema": schema});
    let slow = endless(tool(json!({})), Duration::from_millis(100)).await;
    let limited = client(&slow).deadline(Duration::from_millis(600));
    let error = soon(limited.tools()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
    assert!(slow.requests().len() < 10);
    // A page has 100,000 bytes, or 5,000 values.
    let long = tool(json!({"description": "x".repeat(100_000)}));
    let many = tool(json!({"enum": vec![0; 5000]}));
    for tool in [long, many] {
        let server = endless(tool, Duration::ZERO).await;
        let limited = client(&server).max_response_size(MEGABYTE);
        let error = soon(limited.tools()).await.unwrap_err();
        let is_expected = matches!(
            error,
            ClientError::TooLarge { .. } | ClientError::Unreadable(_)
        );
        assert!(is_expected, "{error}");
        assert!(
            (10..14).contains(&server.requests().len()),
            "{}",
            server.requests().len()
        );
        // The next list has a budget of its own.
        assert!(soon(limited.tools()).await.is_err());
        assert!(server.requests().len() > 20);
    }
}

#[tokio::test]
async fn a_rejected_notification_is_no_error_of_a_later_page() {
    let server = FakeServer::start(|number, request| {
        let id = &message_of(&request)["id"];
        let deep = format!("data: {}{}", "[".repeat(70), "]".repeat(70));
        let page = json!({"id": id, "result": {"tools": [], "nextCursor": "2"}});
        let events = match number {
            0 => return now(answer(200, JSON, reply(&request, ""))),
            1 => format!("{deep}\n\ndata: {page}\n\n"),
            _ => String::new(),
        };
        now(answer(
            200,
            &[("content-type", "text/event-stream")],
            events,
        ))
    })
    .await;
    let client = McpClient::new(&server.url()).unwrap().attempts(1);
    let error = client.tools().await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
}

#[tokio::test]
async fn an_error_has_its_message_whatever_else_is_in_its_body() {
    // Most of the values that a response may have.
    let body = json!({"error": {"message": "not today"}, "more": vec![0; 40_000]}).to_string();
    let server = FakeServer::start(move |_, _| now(answer(400, JSON, body.clone()))).await;
    let oxp = OxpClient::new(&server.url()).unwrap();
    let mcp = McpClient::new(&server.url()).unwrap();
    for error in [
        oxp.max_response_size(MEGABYTE)
            .run::<u64>(&CallRequest::new("tool"))
            .await
            .unwrap_err(),
        mcp.max_response_size(MEGABYTE).tools().await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("not today"), "{error}");
    }
}

/// The responses of a server that repeats the credentials that it gets.
const ECHOES: [(u16, &str); 18] = [
    (401, r#"{"message": "no: KEY"}"#),
    (403, r#"{"error": {"message": "no: KEY", "code": "KEY"}}"#),
    (400, r#"{"message": "no: KEY", "developer_message": "KEY"}"#),
    (
        422,
        r#"{"message": "no: KEY", "parameter_errors": {"KEY": "KEY"}}"#,
    ),
    (
        500,
        r#"{"jsonrpc": "2.0", "id": ID, "error": {"code": 500, "message": "no: KEY"}}"#,
    ),
    (
        200,
        r#"{"jsonrpc": "2.0", "id": ID, "error": {"code": 1, "message": "no: KEY"}}"#,
    ),
    (
        200,
        r#"{"jsonrpc": "2.0", "id": ID, "result": {"isError": true, "content": [{"type": "text", "text": "no: KEY"}]}}"#,
    ),
    (
        200,
        r#"{"success": false, "call_id": "c", "error": {"message": "no: KEY", "additional_prompt_content": "KEY"}}"#,
    ),
    (200, r#"{"items": "KEY", "call_id": "KEY"}"#),
    (200, r#"{"items": [{"id": {"KEY": 1}, "KEY": "KEY"}]}"#),
    (
        200,
        r#"{"jsonrpc": "2.0", "id": ID, "result": {"tools": "\" \u004bEY KEY"}}"#,
    ),
    (200, "KEY"),
    (200, r#"{"KEY": 1, "KEY": 2}"#),
    (202, r#"{"message": "no: KEY"}"#),
    (
        200,
        r#"{"jsonrpc": "2.0", "id": ID, "result": {"resultType": "input_required", "inputRequests": {"KEY": {"method": "elicitation/create", "params": {"message": "no: KEY"}}}}}"#,
    ),
    (
        200,
        r#"{"jsonrpc": "2.0", "id": ID, "result": {"resultType": "input_required", "inputRequests": {"q": {"method": "elicitation/create", "params": {"mode": "url", "message": "no: KEY", "url": "https://KEY/"}}}}}"#,
    ),
    (
        200,
        r#"{"jsonrpc": "2.0", "id": ID, "result": {"resultType": "input_required", "inputRequests": {"q": {"method": "KEY"}}}}"#,
    ),
    // The pages do not end.
    (
        200,
        r#"{"jsonrpc": "2.0", "id": ID, "result": {"nextCursor": "KEY", "tools": [{"name": "KEY", "inputSchema": {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}}]}}"#,
    ),
];

#[tokio::test]
async fn the_clients_own_credentials_are_in_no_error_and_no_log() {
    let (mut log, writer) = std::io::pipe().unwrap();
    // With a second one, `tracing` asks all subscribers whether a line is of interest, instead of
    // only that of the thread that reaches the line first.
    let sink = tracing_subscriber::fmt().with_writer(std::io::sink);
    let _second = tracing::Dispatch::new(sink.finish());
    let subscriber = tracing_subscriber::fmt().with_writer(Arc::new(writer));
    let logging = tracing::subscriber::set_default(subscriber.finish());
    let mut shown = Vec::new();
    for (status, echo) in ECHOES {
        for kind in ["application/json", "text/event-stream", "text/KEY"] {
            let server = FakeServer::start(move |_, request| {
                let headers = ["oxp-api-key", "authorization"];
                let key = headers.iter().find_map(|it| request.headers.get(*it));
                let key = key.map_or("", |it| it.to_str().unwrap());
                let key = key.trim_start_matches("Bearer ");
                let message = message_of(&request);
                if message["method"] == "server/discover" {
                    return now(answer(200, JSON, reply(&request, "")));
                }
                // A signature may contain `ID`.
                let body = echo.replace("ID", &message["id"].to_string());
                let mut body = body.replace("KEY", key);
                if kind == "text/event-stream" {
                    body = format!("data: {body}\n\n");
                }
                let kind = kind.replace("KEY", key);
                now(answer(status, &[("content-type", &kind)], body))
            })
            .await;
            let url = server.url();
            let jwt = || JwtSigner::signed_with("a-secret-of-32-bytes-or-more-.....");
            let call = CallRequest::new("tool");
            for has_key in [true, false] {
                let oxp = OxpClient::new(&url).unwrap().attempts(1);
                let mcp = McpClient::new(&url).unwrap().attempts(1);
                let opentool = OpenToolClient::new(&url).unwrap();
                let (oxp, mcp, opentool) = if has_key {
                    (oxp.api_key(KEY), mcp.api_key(KEY), opentool.api_key(KEY))
                } else {
                    (oxp.jwt(jwt()), mcp.jwt(jwt()), opentool.jwt(jwt()))
                };
                for error in [
                    oxp.tools().await.err(),
                    oxp.run::<u64>(&call).await.err(),
                    mcp.tools().await.err(),
                    mcp.run::<u64>(&call).await.err(),
                ] {
                    let error = error.expect("no response is usable");
                    shown.push(format!("{error} {error:?}"));
                }
                let call = FunctionCall::new("c", "tool", Map::new());
                for error in [
                    opentool.load().await.err(),
                    opentool.call(&call).await.err(),
                ] {
                    shown.extend(error.map(|it| format!("{it} {it:?}")));
                }
            }
        }
    }
    drop(logging);
    let mut logged = String::new();
    log.read_to_string(&mut logged).unwrap();
    assert!(logged.contains("x-mcp-header"), "{logged}");
    shown.extend(logged.lines().map(str::to_owned));
    let is_leak = |it: &&String| it.contains(KEY) || it.contains("eyJ0");
    let leaks: Vec<_> = shown.iter().filter(is_leak).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    assert!(shown.iter().any(|it| it.contains("no: [secret]")));
}

#[tokio::test]
async fn a_calls_own_secrets_are_in_no_error_and_a_value_is_unchanged() {
    let echo = |request: &FakeRequest| message_of(request)["context"].to_string();
    let call = CallRequest::new("tool").token("google", "token-of-the-user");
    let call = call.secret("ID", "secret-of-the-call");
    let server = FakeServer::start(move |_, request| {
        let text = echo(&request);
        now(answer(400, JSON, json!({"message": text}).to_string()))
    })
    .await;
    let client = OxpClient::new(&server.url()).unwrap();
    let outcome = client.call(&call).await.unwrap().outcome;
    let text = outcome.message();
    assert!(
        text.contains("google") && text.contains("[secret]"),
        "{text}"
    );
    assert!(!text.contains("-of-the-"), "{text}");
    let server = FakeServer::start(move |_, request| {
        now(answer(200, JSON, reply(&request, &format!("\"{KEY}\""))))
    })
    .await;
    let client = OxpClient::new(&server.url()).unwrap().api_key(KEY);
    let outcome = client.call(&call).await.unwrap().outcome;
    assert!(matches!(outcome, CallOutcome::Value(value) if value == KEY));
    let server = FakeServer::start(|_, request| {
        let state = format!(r#"0, "resultType": "input_required", "requestState": "{KEY}""#);
        now(answer(200, JSON, reply(&request, &state)))
    })
    .await;
    let client = McpClient::new(&server.url()).unwrap().api_key(KEY);
    let outcome = client.call(&CallRequest::new("tool")).await.unwrap();
    let CallOutcome::InputRequired(input) = outcome.outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(input.request_state.unwrap().expose(), KEY);
}

#[test]
fn requests_to_this_machine_use_no_proxy() {
    let name = "client::hostile::a_calls_own_secrets_are_in_no_error_and_a_value_is_unchanged";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        // Nothing listens there.
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}");
}

fn error_of<T>(result: Result<T, impl std::fmt::Display>) -> Option<String> {
    result.err().map(|error| error.to_string())
}

/// Every address of this machine reaches the server, but only some are known to be this machine.
#[tokio::test]
async fn credentials_are_not_sent_unencrypted_to_other_machines() {
    let server = FakeServer::start(|_, request| now(answer(200, JSON, reply(&request, "1")))).await;
    let port = server.address.port();
    let call = CallRequest::new("tool");
    let function = FunctionCall::new("c", "tool", Map::new());
    for (host, is_sent) in [("127.0.0.1", true), ("localhost", true), ("0.0.0.0", false)] {
        let url = format!("http://{host}:{port}");
        let oxp = OxpClient::new(&url).unwrap().attempts(1);
        let mcp = McpClient::new(&url).unwrap().attempts(1);
        let opentool = OpenToolClient::new(&url).unwrap();
        let jwt = JwtSigner::signed_with("a-secret-of-32-bytes-or-more-.....");
        let before = server.requests().len();
        let with_token = call.clone().token("google", "token-of-the-user");
        let errors = [
            error_of(oxp.clone().api_key(KEY).call(&call).await),
            error_of(oxp.clone().jwt(jwt).call(&call).await),
            error_of(oxp.clone().call(&with_token).await),
            error_of(mcp.clone().api_key(KEY).call(&call).await),
            error_of(opentool.clone().api_key(KEY).call(&function).await),
        ];
        for error in errors {
            assert_eq!(error.is_none(), is_sent, "{host}: {error:?}");
            assert!(error.is_none_or(|it| it.contains("https://")), "{host}");
        }
        assert_eq!(server.requests().len() > before, is_sent, "{host}");
        // Without credentials, or for a network that is trusted.
        assert!(oxp.call(&call).await.is_ok(), "{host}");
        assert!(
            oxp.api_key(KEY)
                .allow_http()
                .call(&with_token)
                .await
                .is_ok(),
            "{host}"
        );
        assert!(
            mcp.api_key(KEY).allow_http().call(&call).await.is_ok(),
            "{host}"
        );
        assert!(
            opentool
                .api_key(KEY)
                .allow_http()
                .call(&function)
                .await
                .is_ok(),
            "{host}"
        );
    }
}
