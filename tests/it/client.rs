//! The crate's clients, with scripted responses: errors, retries, and credentials and secrets, which
//! they never reveal. `client/calls.rs` has a tool server.

mod calls;

use std::{
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::request::Parts,
    response::Response,
};
use futures_util::stream;
use lambda_tools::client::{
    CallRequest, ClientError, ClientOptions, JwtSigner,
    opentool::{FunctionCall, OpenToolClient},
    oxp::OxpClient,
};
use serde_json::{Value, json};
use test_support::{Served, answer};

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

/// Returns options without retries.
fn once() -> ClientOptions {
    ClientOptions::default().attempts(1)
}

fn oxp(url: &str, options: ClientOptions) -> OxpClient {
    OxpClient::new(url, options).unwrap()
}

fn opentool(url: &str, options: ClientOptions) -> OpenToolClient {
    OpenToolClient::new(url, options).unwrap()
}

/// Returns the errors of a call over OXP and OpenTool.
async fn errors_of(url: &str, options: &ClientOptions) -> [Option<String>; 2] {
    let call = CallRequest::new("tool");
    let function = calls::call("tool", &json!({}));
    let oxp = oxp(url, options.clone()).call(&call).await.err();
    let opentool = opentool(url, options.clone()).call(&function).await.err();
    [oxp, opentool].map(|error| error.map(|it| it.to_string()))
}

/// A request that a fake server received, with its body as JSON.
struct FakeRequest {
    parts: Parts,
    body: Value,
}

impl FakeRequest {
    fn header(&self, name: &str) -> Option<&str> {
        let value = self.parts.headers.get(name);
        value.map(|it| it.to_str().unwrap())
    }
}

/// A server with scripted responses.
struct FakeServer {
    served: Served,
    requests: Arc<Mutex<Vec<FakeRequest>>>,
}

impl FakeServer {
    /// Starts a server. `respond` receives the number of the request, counted from 0, and the
    /// request.
    async fn start(
        respond: impl Fn(usize, &FakeRequest) -> Response + Clone + Send + Sync + 'static,
    ) -> Self {
        let requests = Arc::<Mutex<Vec<FakeRequest>>>::default();
        let log = Arc::clone(&requests);
        let handler = move |parts: Parts, body: Bytes| async move {
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let request = FakeRequest { parts, body };
            let mut log = log.lock().unwrap();
            let response = respond(log.len(), &request);
            log.push(request);
            response
        };
        let served = Served::start(Router::new().fallback(handler)).await;
        Self { served, requests }
    }

    /// Sends the same response to every request.
    async fn fixed(status: u16, headers: &'static [(&str, &str)], body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self::start(move |_, _| answer(status, headers, body.clone())).await
    }

    fn url(&self) -> &str {
        &self.served.url
    }

    /// Returns the number of requests.
    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

#[tokio::test]
async fn an_unreadable_response_is_an_error() {
    let deep = "[".repeat(65) + &"]".repeat(65);
    let many = format!("[{}0]", "0,".repeat(840_000));
    let fields = "it does not have the expected fields";
    let neither = "it reports neither success nor an error";
    let no_result = "it has no result of this call";
    let failed = "The call failed";
    // The body, and the errors over OXP and OpenTool.
    for (body, errors) in [
        (r#"{"success": tr"#, ["it is not valid JSON"; 2]),
        (&deep, ["more than 64 levels"; 2]),
        (&many, ["more than 838860 values"; 2]),
        ("null", [neither, no_result]),
        (r#"{"success": "yes", "value": 1}"#, [neither, no_result]),
        (r#"{"success": true, "error": {}}"#, [neither, failed]),
        (r#"{"success": false}"#, ["not a JSON object", no_result]),
        (r#"{"success": false, "error": {}}"#, [fields, failed]),
        (r#"{"id": "call-2", "result": {}}"#, [neither, no_result]),
        (r#"{"id": "call-1", "result": 5}"#, [neither, no_result]),
    ] {
        let server = FakeServer::fixed(200, JSON, body.to_owned()).await;
        let found = errors_of(server.url(), &once()).await;
        for (found, expected) in found.into_iter().zip(errors) {
            let found = found.unwrap();
            assert!(found.contains(expected), "{body:.50}: {found}");
        }
        let list = oxp(server.url(), once()).tools().await;
        assert!(list.is_err(), "{body:.50}");
    }
}

/// Gateways and proxies respond in formats of their own.
#[tokio::test]
async fn an_error_status_is_an_error_and_no_redirect_is_followed() {
    const HTML: &[(&str, &str)] = &[("content-type", "text/html; charset=utf-8")];
    const ELSEWHERE: &[(&str, &str)] = &[("location", "/")];
    let long = format!(r#"{{"message": "{}"}}"#, "é".repeat(10_000));
    for (status, headers, body, expected) in [
        (200, HTML, "{}", "its type is 'text/html', not JSON"),
        (307, ELSEWHERE, "", "307: Temporary Redirect"),
        (400, HTML, "<html>", "400: Bad Request"),
        (422, JSON, r#"{"message": 5}"#, "422: Unprocessable"),
        (401, JSON, r#"{"message": "No."}"#, "not authorized: No."),
        (404, JSON, &long, "404: éé"),
        (500, JSON, r#"{"error": {"message": "No."}}"#, "No."),
    ] {
        let server = FakeServer::fixed(status, headers, body.to_owned()).await;
        for error in errors_of(server.url(), &once()).await {
            let error = error.unwrap();
            assert!(error.contains(expected) && error.len() < 600, "{error}");
        }
        assert_eq!(server.count(), 2, "{status}");
    }
}

#[tokio::test]
async fn a_response_that_is_too_large_is_not_read_to_its_end() {
    let endless = |_, _: &FakeRequest| {
        let chunk = || std::io::Result::Ok(Bytes::from(vec![b' '; 1 << 20]));
        let body = stream::iter(std::iter::repeat_with(chunk));
        answer(200, JSON, Body::from_stream(body))
    };
    let server = FakeServer::start(endless).await;
    for error in errors_of(server.url(), &once()).await {
        assert_eq!(error.unwrap(), "the response has more than 16777216 bytes");
    }
}

const DONE: &str = r#"{"call_id": "c", "success": true, "value": 15}"#;

/// Asserts that all requests have the same `call_id`, and returns their number.
#[track_caller]
fn attempts(server: &FakeServer) -> usize {
    let requests = server.requests.lock().unwrap();
    let id = &requests[0].body["call_id"];
    assert!(id.is_string() && requests.iter().all(|it| it.body["call_id"] == *id));
    requests.len()
}

#[tokio::test]
async fn the_server_decides_if_and_when_a_call_is_retried() {
    const SOON: &[(&str, &str)] = &[("retry-after", "0")];
    const LATER: &[(&str, &str)] = &[("retry-after", "1")];
    const YES: &[(&str, &str)] = &[("x-should-retry", "true"), ("retry-after", "0")];
    const NO: &[(&str, &str)] = &[("x-should-retry", "false")];
    let temporary = r#"{"success": false,
        "error": {"message": "m", "can_retry": true, "retry_after_ms": 300}}"#;
    let permanent = r#"{"success": false, "error": {"message": "m"}}"#;
    let challenge = r#"{"message": "m", "missing_requirements": {"user_id": true}}"#;
    // The first response, and the milliseconds until the next request.
    for (status, headers, body, wait) in [
        (408, SOON, "", Some(0)),
        (429, SOON, "", Some(0)),
        (503, LATER, "", Some(1000)),
        // At least half of the first wait.
        (503, &[], "", Some(125)),
        (400, YES, "", Some(0)),
        (503, NO, "", None),
        (409, &[], "", None),
        (400, JSON, r#"{"message": "m"}"#, None),
        (400, JSON, challenge, None),
        (200, JSON, temporary, Some(300)),
        (200, JSON, permanent, None),
    ] {
        let respond = move |number, _: &FakeRequest| match number {
            0 => answer(status, headers, body),
            _ => answer(200, JSON, DONE),
        };
        let server = FakeServer::start(respond).await;
        let begun = Instant::now();
        let client = oxp(server.url(), ClientOptions::default());
        let reply = client.call(&CallRequest::new("tool")).await;
        let is_done = reply.is_ok_and(|it| it.outcome.value().is_some());
        assert_eq!(is_done, wait.is_some(), "{status} {body}");
        let count = if is_done { 2 } else { 1 };
        assert_eq!(attempts(&server), count, "{status} {body}");
        let wait = Duration::from_millis(wait.unwrap_or(0));
        assert!(begun.elapsed() >= wait, "{status} {body}");
    }
}

#[tokio::test]
async fn retries_end_after_the_attempts_and_before_the_deadline() {
    for (after, count) in [("0", 4), ("3600", 1)] {
        let busy = move |_, _: &FakeRequest| answer(503, &[("retry-after", after)], "");
        let server = FakeServer::start(busy).await;
        let begun = Instant::now();
        let client = oxp(server.url(), ClientOptions::default());
        let error = client.call(&CallRequest::new("tool")).await;
        assert!(matches!(error, Err(ClientError::Status { .. })));
        assert_eq!(attempts(&server), count);
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn both_limits_of_time_end_an_attempt() {
    let short = Duration::from_millis(300);
    let options = ClientOptions::default();
    for (options, count) in [
        (options.clone().timeout(short).attempts(2), 2),
        (options.deadline(short), 1),
    ] {
        // The body never comes.
        let endless = |_, _: &FakeRequest| {
            let body = stream::pending::<std::io::Result<Bytes>>();
            answer(200, JSON, Body::from_stream(body))
        };
        let server = FakeServer::start(endless).await;
        let begun = Instant::now();
        let client = oxp(server.url(), options);
        let error = client.call(&CallRequest::new("tool")).await.unwrap_err();
        assert!(error.to_string().contains("no response in time"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(attempts(&server), count);
    }
}

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
                let function = calls::call("tool", &json!({}));
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
    let name = "client::a_calls_own_secrets_are_in_no_error_and_a_value_is_unchanged";
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
