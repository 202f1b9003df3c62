//! The clients against servers that want their memory, their time or their credentials.

use std::process::Command;

use lambda_tools::client::{
    CallOutcome, CallRequest, ClientOptions, JwtSigner, opentool::FunctionCall,
};
use serde_json::{Map, json};

use super::{FakeRequest, FakeServer, JSON, answer, now, once, opentool, oxp};

const MEGABYTE: usize = 1 << 20;
const KEY: &str = "key-of-the-agent";

/// Returns the body of a reply over OXP or OpenTool, whose value is the text of this JSON.
fn reply(request: &FakeRequest, value: &str) -> String {
    let message = request.message();
    let id = &message["id"];
    match message["method"].as_str() {
        Some(_) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"value":{value}}}}}"#),
        None => format!(r#"{{"call_id":"c","success":true,"value":{value}}}"#),
    }
}

#[tokio::test]
async fn values_are_counted_as_on_the_server() {
    let lists = |count: usize| format!("[{}0]", "[[[0]]],".repeat(count));
    // A response may have 52,428 values for each megabyte.
    for (count, is_read) in [(13_000, true), (13_200, false)] {
        let server = FakeServer::start(move |_, request| {
            now(answer(200, JSON, reply(&request, &lists(count))))
        })
        .await;
        for error in errors_of(&server.url(), &once().max_response_size(MEGABYTE)).await {
            assert_eq!(error.is_none(), is_read, "{count}: {error:?}");
            let is_expected = |it: String| it.contains("more than 52428 values");
            assert!(error.is_none_or(is_expected), "{count}");
        }
    }
}

#[tokio::test]
async fn levels_are_counted_as_on_the_server() {
    // A response may have 64 levels; in OXP, one is around the value, in OpenTool two.
    for (levels, is_read) in [(62, [true; 2]), (63, [true, false]), (64, [false; 2])] {
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

/// Returns the errors of a call over OXP and OpenTool.
async fn errors_of(url: &str, options: &ClientOptions) -> [Option<String>; 2] {
    let call = CallRequest::new("tool");
    let function = FunctionCall::new("c", "tool", Map::new());
    [
        error_of(oxp(url, options.clone()).call(&call).await),
        error_of(opentool(url, options.clone()).call(&function).await),
    ]
}

fn error_of<T>(result: Result<T, impl std::fmt::Display>) -> Option<String> {
    result.err().map(|error| error.to_string())
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
const ECHOES: [(u16, &str); 12] = [
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
        r#"{"success": false, "call_id": "c", "error": {"message": "no: KEY", "additional_prompt_content": "KEY"}}"#,
    ),
    (200, r#"{"items": "KEY", "call_id": "KEY"}"#),
    (200, r#"{"items": [{"id": {"KEY": 1}, "KEY": "KEY"}]}"#),
    (200, "KEY"),
    (200, r#"{"KEY": 1, "KEY": 2}"#),
    (202, r#"{"message": "no: KEY"}"#),
];

#[tokio::test]
async fn the_clients_own_credentials_are_in_no_error() {
    let mut shown = Vec::new();
    for (status, echo) in ECHOES {
        for kind in ["application/json", "text/KEY"] {
            let server = FakeServer::start(move |_, request| {
                let headers = ["oxp-api-key", "authorization"];
                let key = headers.iter().find_map(|it| request.headers.get(*it));
                let key = key.map_or("", |it| it.to_str().unwrap());
                let key = key.trim_start_matches("Bearer ");
                let message = request.message();
                // A signature may contain `ID`.
                let body = echo.replace("ID", &message["id"].to_string());
                let body = body.replace("KEY", key);
                let kind = kind.replace("KEY", key);
                now(answer(status, &[("content-type", &kind)], body))
            })
            .await;
            let url = server.url();
            let jwt = || JwtSigner::signed_with("a-secret-of-32-bytes-or-more-.....");
            let call = CallRequest::new("tool");
            for options in [once().api_key(KEY), once().jwt(jwt())] {
                let oxp = oxp(&url, options.clone());
                for error in [oxp.tools().await.err(), oxp.run::<u64>(&call).await.err()] {
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
            assert_eq!(errors, [const { None }; 2], "{host}");
        }
    }
}
