//! The clients against servers that want their memory, their time or their credentials.

use std::{process::Command, sync::Arc, time::Duration};

use lambda_tools::client::{
    ClientError, ClientOptions, JwtSigner, mcp::CallRequest, opentool::FunctionCall,
    oxp::CallOutcome,
};
use serde_json::{Map, Value, json};

use super::{
    FakeRequest, FakeServer, JSON, answer, discovery, mcp, now, once, opentool, oxp, result, soon,
};

const MEGABYTE: usize = 1 << 20;
const KEY: &str = "key-of-the-agent";

/// Returns the body of a reply over any of the protocols, whose value is the text of this JSON.
fn reply(request: &FakeRequest, value: &str) -> String {
    let message = request.message();
    let id = &message["id"];
    match message["method"].as_str() {
        Some("server/discover") => {
            json!({"jsonrpc": "2.0", "id": id, "result": discovery()}).to_string()
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
            for error in errors_of(&server.url(), &once().max_response_size(MEGABYTE)).await {
                assert_eq!(error.is_none(), is_read, "{count}: {error:?}");
                let is_expected = |it: String| it.contains("more than 52428 values");
                assert!(error.is_none_or(is_expected), "{count}");
            }
        }
    }
}

#[tokio::test]
async fn levels_are_counted_as_on_the_server() {
    // A response may have 64 levels; in OXP, one is around the value, otherwise two.
    for (levels, is_read) in [
        (62, [true; 3]),
        (63, [true, false, false]),
        (64, [false; 3]),
    ] {
        for (open, innermost, close) in [("[", "[]", "]"), (r#"{"a":"#, "{}", "}")] {
            let (open, close) = (open.repeat(levels - 1), close.repeat(levels - 1));
            let value = format!("{open}{innermost}{close}");
            let server = FakeServer::start(move |_, request| {
                now(answer(200, JSON, reply(&request, &value)))
            })
            .await;
            let errors = errors_of(&server.url(), &once()).await;
            for (error, is_read) in errors.into_iter().zip(is_read) {
                assert_eq!(error.is_none(), is_read, "{levels} {innermost}: {error:?}");
                let is_expected = |it: String| it.contains("more than 64 levels");
                assert!(error.is_none_or(is_expected), "{levels} {innermost}");
            }
        }
    }
}

/// Returns the errors of a call over OXP, MCP and OpenTool.
async fn errors_of(url: &str, options: &ClientOptions) -> [Option<String>; 3] {
    let call = CallRequest::new("tool");
    let function = FunctionCall::new("c", "tool", Map::new());
    [
        error_of(oxp(url, options.clone()).call(&call).await),
        error_of(mcp(url, options.clone()).call(&call).await),
        error_of(opentool(url, options.clone()).call(&function).await),
    ]
}

fn error_of<T>(result: Result<T, impl std::fmt::Display>) -> Option<String> {
    result.err().map(|error| error.to_string())
}

/// Starts a server whose list of tools never ends; each page has this tool, and takes this long.
async fn endless(tool: Value, time: Duration) -> FakeServer {
    FakeServer::start(move |number, request| {
        let page = match request.message()["method"].as_str() {
            Some("server/discover") => discovery(),
            _ => json!({"tools": [tool], "nextCursor": number.to_string()}),
        };
        let page = result(&request, &page);
        Box::pin(async move {
            tokio::time::sleep(time).await;
            page
        })
    })
    .await
}

#[tokio::test]
async fn all_pages_of_a_list_share_one_deadline_and_one_budget() {
    let tool = |schema: Value| json!({"name": "tool", "inputSchema": schema});
    let slow = endless(tool(json!({})), Duration::from_millis(100)).await;
    let limited = ClientOptions::default().deadline(Duration::from_millis(600));
    let error = soon(mcp(&slow.url(), limited).tools()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
    assert!(slow.requests().len() < 10);
    // A page has 100,000 bytes, or 5,000 values.
    let long = tool(json!({"description": "x".repeat(100_000)}));
    let many = tool(json!({"enum": vec![0; 5000]}));
    for tool in [long, many] {
        let server = endless(tool, Duration::ZERO).await;
        let limited = mcp(&server.url(), once().max_response_size(MEGABYTE));
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
async fn an_error_has_its_message_whatever_else_is_in_its_body() {
    // Most of the values that a response may have.
    let body = json!({"error": {"message": "not today"}, "more": vec![0; 40_000]}).to_string();
    let server = FakeServer::start(move |_, _| now(answer(400, JSON, body.clone()))).await;
    let options = once().max_response_size(MEGABYTE);
    let client = oxp(&server.url(), options);
    let error = client.run::<u64>(&CallRequest::new("tool")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("not today"), "{error}");
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
    (
        200,
        r#"{"jsonrpc": "2.0", "id": ID, "result": {"tools": [{"name": "KEY", "inputSchema": {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}}]}}"#,
    ),
];

#[tokio::test]
async fn the_clients_own_credentials_are_in_no_error_and_no_log() {
    // Without a subscriber of all threads, another test could silence this one: `tracing` keeps which
    // events anyone is interested in.
    let all_threads = tracing_subscriber::fmt().with_writer(std::io::sink);
    let _ = tracing::subscriber::set_global_default(all_threads.finish());
    let path = std::env::temp_dir().join(format!("hostile-{}.log", std::process::id()));
    let writer = std::fs::File::create(&path).unwrap();
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
                let message = request.message();
                if message["method"] == "server/discover" {
                    return now(result(&request, &discovery()));
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
            for options in [once().api_key(KEY), once().jwt(jwt())] {
                let (oxp, mcp) = (oxp(&url, options.clone()), mcp(&url, options.clone()));
                for error in [
                    oxp.tools().await.err(),
                    oxp.run::<u64>(&call).await.err(),
                    mcp.tools().await.err(),
                    mcp.run::<u64>(&call).await.err(),
                ] {
                    shown.extend(error.map(|it| format!("{it} {it:?}")));
                }
                let opentool = opentool(&url, options);
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
    let logged = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    assert!(logged.contains("x-mcp-header"), "{logged}");
    shown.extend(logged.lines().map(str::to_owned));
    let is_leak = |it: &&String| it.contains(KEY) || it.contains("eyJ0");
    let leaks: Vec<_> = shown.iter().filter(is_leak).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    assert!(shown.iter().any(|it| it.contains("no: [secret]")));
}

#[tokio::test]
async fn a_calls_own_secrets_are_in_no_error_and_a_value_is_unchanged() {
    let echo = |request: &FakeRequest| request.message()["context"].to_string();
    let call = CallRequest::new("tool").token("google", "token-of-the-user");
    let call = call.secret("ID", "secret-of-the-call");
    let server = FakeServer::start(move |_, request| {
        let text = echo(&request);
        now(answer(400, JSON, json!({"message": text}).to_string()))
    })
    .await;
    let client = oxp(&server.url(), once());
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
    let client = oxp(&server.url(), once().api_key(KEY));
    let outcome = client.call(&call).await.unwrap().outcome;
    assert!(matches!(outcome, CallOutcome::Value(value) if value == KEY));
    let server = FakeServer::start(|_, request| {
        now(result(
            &request,
            &match request.message()["method"].as_str() {
                Some("server/discover") => discovery(),
                _ => json!({"resultType": "input_required", "requestState": KEY}),
            },
        ))
    })
    .await;
    let client = mcp(&server.url(), once().api_key(KEY));
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

/// Every address of this machine reaches the server, but only some are known to be this machine.
#[tokio::test]
async fn credentials_are_not_sent_unencrypted_to_other_machines() {
    let server = FakeServer::start(|_, request| now(answer(200, JSON, reply(&request, "1")))).await;
    let port = server.address.port();
    for (host, is_sent) in [("127.0.0.1", true), ("localhost", true), ("0.0.0.0", false)] {
        let url = format!("http://{host}:{port}");
        let jwt = JwtSigner::signed_with("a-secret-of-32-bytes-or-more-.....");
        let with_token = CallRequest::new("tool").token("google", "token-of-the-user");
        let before = server.requests().len();
        let with_token = error_of(oxp(&url, once()).call(&with_token).await);
        let mut errors = vec![with_token];
        for options in [once().api_key(KEY), once().jwt(jwt)] {
            errors.extend(errors_of(&url, &options).await);
        }
        for error in errors {
            assert_eq!(error.is_none(), is_sent, "{host}: {error:?}");
            assert!(error.is_none_or(|it| it.contains("https://")), "{host}");
        }
        assert_eq!(server.requests().len() > before, is_sent, "{host}");
        // Without credentials, or for a network that is trusted.
        for options in [once(), once().api_key(KEY).allow_http()] {
            let errors = errors_of(&url, &options).await;
            assert_eq!(errors, [const { None }; 3], "{host}");
        }
    }
}
