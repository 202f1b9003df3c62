//! The clients reveal neither credentials nor the tokens and secrets of calls.

use std::process::Command;

use lambda_tools::client::{
    CallRequest, ClientError, JwtSigner, opentool::FunctionCall, oxp::OxpClient,
};
use serde_json::{Map, json};

use super::{FakeRequest, FakeServer, JSON, answer, errors_of, once, opentool, oxp};

const KEY: &str = "key-of-the-agent";

fn jwt() -> JwtSigner {
    JwtSigner::signed_with("marked-secret-0123456789abcdef0123456789")
}

/// The responses of a server that repeats the credentials that it gets.
const ECHOES: [(u16, &str); 8] = [
    (401, r#"{"message": "no: KEY"}"#),
    (400, r#"{"message": "m", "developer_message": "KEY"}"#),
    (422, r#"{"message": "m", "parameter_errors": {"KEY": ""}}"#),
    (500, r#"{"error": {"code": 500, "message": "no: KEY"}}"#),
    (200, r#"{"success": false, "error": {"message": "KEY"}}"#),
    (200, r#"{"items": "KEY", "id": "KEY", "result": "KEY"}"#),
    (200, r#"{"items": [{"id": {"KEY": 1}, "KEY": "KEY"}]}"#),
    (200, "KEY"),
];

#[tokio::test]
async fn the_clients_own_credentials_are_in_no_error() {
    let mut shown = Vec::new();
    for (status, echo) in ECHOES {
        for kind in ["application/json", "text/KEY"] {
            let respond = move |_, request: &FakeRequest| {
                let names = ["oxp-api-key", "authorization"];
                let key = names.iter().find_map(|it| request.header(it)).unwrap();
                let key = key.trim_start_matches("Bearer ");
                let kind = kind.replace("KEY", key);
                answer(status, &[("content-type", &kind)], echo.replace("KEY", key))
            };
            let server = FakeServer::start(respond).await;
            for options in [once().api_key(KEY), once().jwt(jwt())] {
                let oxp = oxp(server.url(), options.clone());
                let opentool = opentool(server.url(), options);
                let function = FunctionCall::new("c", "tool", Map::new());
                shown.push(format!("{:?}", oxp.call(&CallRequest::new("tool")).await));
                shown.push(format!("{:?}", oxp.tools().await.err()));
                shown.push(format!("{:?}", opentool.call(&function).await));
                shown.push(format!("{:?}", opentool.load().await.err()));
            }
        }
    }
    let shown = shown.join("\n");
    assert!(!shown.contains(KEY) && !shown.contains("eyJ0"), "{shown}");
    assert!(shown.contains("no: [secret]"));
}

#[tokio::test]
async fn a_calls_own_secrets_are_in_no_error_and_a_value_is_unchanged() {
    let call = CallRequest::new("tool").token("google", "token-of-the-user");
    let call = call.secret("ID", "secret-of-the-call");
    for (status, is_value) in [(400, false), (200, true)] {
        let echo = move |_, request: &FakeRequest| {
            let context = request.body["context"].to_string();
            let body = json!({"message": context, "success": true, "value": context});
            answer(status, JSON, body.to_string())
        };
        let server = FakeServer::start(echo).await;
        let outcome = oxp(server.url(), once()).call(&call).await.unwrap().outcome;
        let text = format!("{outcome:?}");
        assert!(text.contains("google"), "{text}");
        assert_eq!(text.contains("-of-the-"), is_value, "{text}");
        assert_eq!(text.contains("[secret]"), !is_value, "{text}");
    }
}

#[test]
fn requests_to_this_machine_use_no_proxy() {
    let name = "client::confidential::a_calls_own_secrets_are_in_no_error_and_a_value_is_unchanged";
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
    let reply = r#"{"success": true, "id": "call-1", "result": {"success": true}}"#;
    let server = FakeServer::fixed(200, JSON, reply).await;
    for (host, is_sent) in [("127.0.0.1", true), ("localhost", true), ("0.0.0.0", false)] {
        let url = server.url().replace("127.0.0.1", host);
        let before = server.count();
        let with_token = CallRequest::new("tool").token("google", "token-of-the-user");
        let error = oxp(&url, once()).call(&with_token).await.err();
        let mut errors = vec![error.map(|it| it.to_string())];
        errors.extend(errors_of(&url, &once().api_key(KEY)).await);
        for error in errors {
            assert_eq!(error.is_none(), is_sent, "{host}: {error:?}");
            assert!(error.is_none_or(|it| it.contains("https://")), "{host}");
        }
        assert_eq!(server.count() > before, is_sent, "{host}");
        // Without credentials, or for a network that is trusted.
        for options in [once(), once().api_key(KEY).allow_http()] {
            assert_eq!(errors_of(&url, &options).await, [None, None], "{host}");
        }
    }
}

#[test]
fn credentials_are_not_printed() {
    let url = "http://tools.example";
    let call = CallRequest::new("A.B").secret("K", "marked-value");
    let error = OxpClient::new("http://user:marked@tools.example", once()).unwrap_err();
    let printed = format!(
        "{call:?} {error} {error:?} {:?} {:?}",
        oxp(url, once().api_key("marked-key")),
        opentool(url, once().jwt(jwt())),
    );
    assert!(!printed.contains("marked"), "{printed}");
}

#[tokio::test]
async fn a_misconfigured_client_returns_an_error() {
    for url in ["tools.example", "ftp://t", "http://a:b@t", "http://t/?q"] {
        let error = OxpClient::new(url, once()).unwrap_err();
        assert!(matches!(error, ClientError::Setup(_)), "{url}");
    }
    let short = JwtSigner::signed_with("short");
    for (options, expected) in [
        (once().jwt(short), "fewer than 32 bytes"),
        (once().api_key("line\nfeed"), "not a valid header value"),
        (once(), "the server cannot be reached"),
    ] {
        for error in errors_of("http://127.0.0.1:1", &options).await {
            let error = error.unwrap();
            assert!(error.contains(expected), "{error}");
        }
    }
}
