//! Web pages of other origins: what browsers let them send and read, on every path.

use axum::{Router, routing::get};
use http::HeaderMap;
use lambda_tools::{ApiKeys, Server, Toolkit, secrets::Secrets};
use serde_json::{Value, json};

use crate::support::{self, event, function, idle, server};

const PAGE: &str = "https://app.example";
const KEY: &str = "key-of-the-caller-1";

fn tools() -> Server {
    server(Toolkit::new([idle("T.T@1.0.0", "A tool.")]).unwrap())
        .auth(ApiKeys::with_ids(["KEY"]))
        .secrets(Secrets::fixed([("KEY", KEY)]))
        .allowed_origins([PAGE])
}

/// Returns the status and the headers of a response.
async fn send(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &'static str,
) -> (u16, HeaderMap) {
    let own = |router: Router| router.route("/own", get(async || "own"));
    let router = tools().map_router(own).into_router().unwrap();
    let response = support::send(&router, method, path, headers, body).await;
    (response.status, response.headers)
}

fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).iter();
    values
        .map(|it| it.to_str().unwrap().to_lowercase())
        .collect()
}

fn cors_headers(headers: &HeaderMap) -> Vec<&str> {
    let names = headers.keys().map(http::HeaderName::as_str);
    names
        .filter(|it| it.starts_with("access-control"))
        .collect()
}

const PATHS: &[&str] = &[
    "/mcp",
    "/mcp/",
    "/tools",
    "/tools/",
    "/tools/call",
    "/tools/T.T/call",
    "/call",
    "/openapi.json",
    "/health",
    "/opentool/version",
    "/opentool/load",
    "/opentool/call",
    "/nothing",
    "/",
];

/// Fetch, CORS protocol. Browsers send no credentials with the question.
#[tokio::test]
async fn preflight_requests_of_allowed_pages_are_answered_on_every_path() {
    let asked = "authorization, mcp-param-x, x-anything";
    for path in PATHS {
        for origin in [PAGE, "http://localhost:6274"] {
            let headers = [
                ("origin", origin),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", asked),
            ];
            let (status, headers) = send("OPTIONS", path, &headers, "").await;
            assert_eq!(status, 204, "{path} {origin}");
            let value = |name| values(&headers, name);
            assert_eq!(headers["access-control-allow-origin"], origin);
            assert_eq!(value("access-control-allow-headers"), [asked]);
            let methods = value("access-control-allow-methods").concat();
            let has_both = methods.contains("get") && methods.contains("post");
            assert!(has_both, "{methods}");
            assert_eq!(value("vary"), ["origin"]);
            assert!(!headers.contains_key("access-control-allow-credentials"));
        }
    }
}

#[tokio::test]
async fn allowed_pages_may_read_every_response() {
    let key = format!("Bearer {KEY}");
    for (method, path, credentials, status) in [
        ("GET", "/tools", "", 401),
        ("GET", "/tools", &*key, 200),
        ("POST", "/mcp", "", 401),
        ("POST", "/mcp", &key, 415),
        ("GET", "/mcp", &key, 405),
        ("POST", "/tools/call", "Bearer wrong", 401),
        ("POST", "/tools/call", &key, 400),
        ("GET", "/tools/call", "", 405),
        ("GET", "/health/", "", 200),
        ("GET", "/opentool/load", "", 401),
        ("GET", "/nothing", "", 404),
    ] {
        let headers = [("origin", PAGE), ("authorization", credentials)];
        let sent = &headers[..if credentials.is_empty() { 1 } else { 2 }];
        let (answered, headers) = send(method, path, sent, "").await;
        assert_eq!(answered, status, "{path}");
        let allowed = values(&headers, "access-control-allow-origin");
        assert_eq!(allowed, [PAGE], "{path}");
        let exposed = values(&headers, "access-control-expose-headers").concat();
        let names = "www-authenticate retry-after idempotent-replay etag ratelimit";
        for name in names.split(' ') {
            assert!(exposed.split(", ").any(|it| it == name), "{path} {exposed}");
        }
        // One value: the response to an event has room for no other.
        let vary = match (path, status) {
            ("/tools", 200) => "oxp-version, origin",
            _ => "origin",
        };
        assert_eq!(values(&headers, "vary"), [vary], "{path}");
        let (_, headers) = send("GET", path, &sent[1..], "").await;
        assert!(cors_headers(&headers).is_empty(), "no page: {path}");
    }
}

/// Other pages may neither send nor read. A program's routes keep their own rules.
#[tokio::test]
async fn other_pages_and_other_routes_get_no_cors_headers() {
    let key = format!("Bearer {KEY}");
    for (origin, method, path, status) in [
        ("https://evil.example", "OPTIONS", "/mcp", 403),
        ("https://evil.example", "OPTIONS", "/tools", 405),
        ("https://evil.example", "POST", "/mcp", 403),
        ("null", "POST", "/mcp", 403),
        ("null", "GET", "/tools", 403),
        ("https://evil.example", "GET", "/health", 200),
        ("https://evil.example", "OPTIONS", "/nothing", 404),
        (PAGE, "GET", "/own", 200),
        (PAGE, "OPTIONS", "/own", 405),
    ] {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("authorization", &key),
        ];
        let (answered, headers) = send(method, path, &headers, "").await;
        assert_eq!(answered, status, "{origin} {path}");
        assert!(cors_headers(&headers).is_empty(), "{origin} {path}");
    }
}

/// A page of the server itself may call it, at the URL of the request and at the public one.
#[tokio::test]
async fn pages_of_the_server_itself_may_send() {
    let function = function(tools().public_url("https://public.example/agents"));
    for (origin, is_refused) in [
        ("https://public.example", false),
        ("https://tools.example", false),
        ("https://other.example", true),
    ] {
        let mut event: Value = serde_json::from_str(&event("POST", "/mcp", "{}")).unwrap();
        event["headers"]["origin"] = origin.into();
        event["headers"]["authorization"] = format!("Bearer {KEY}").into();
        event["requestContext"]["domainName"] = "tools.example".into();
        let response = function.respond(&event.to_string()).await.unwrap();
        assert_eq!(response.status == 403, is_refused, "{origin}");
    }
}

/// RFC 9110, 15.5.16 and 12.5.3.
#[tokio::test]
async fn a_response_to_an_encoded_body_says_which_encodings_are_decoded() {
    for path in ["/mcp", "/tools/call", "/tools/T.T/call", "/opentool/call"] {
        let key = format!("Bearer {KEY}");
        for (encoding, body, is_refused) in [
            ("gzip", "{}", true),
            ("identity, zstd", "{}", true),
            ("x", "{}", true),
            ("identity", "{}", false),
            ("gzip", "", false),
        ] {
            let headers = [
                ("content-encoding", encoding),
                ("authorization", &key),
                ("content-type", "application/json"),
            ];
            let (status, headers) = send("POST", path, &headers, body).await;
            assert_eq!(status == 415, is_refused, "{path} {encoding}");
            let accepted = is_refused.then_some("identity").into_iter();
            assert!(values(&headers, "accept-encoding").iter().eq(accepted));
        }
    }
}

#[tokio::test]
async fn an_event_with_the_fields_of_a_warm_up_and_of_another_kind_is_the_other() {
    let accepting = function(tools());
    // Fields of another kind decide, wherever they are.
    for call in [
        json!({"source": "aws.events", "tool_id": "T.T", "input": {}}),
        json!({"tool_id": "T.T", "input": {}, "warmer": true}),
    ] {
        let answer = accepting.invoke(&call.to_string()).await.unwrap();
        assert_eq!(answer["success"], true, "{answer}");
    }
    let request = event("GET", "/health", "").replacen('{', r#"{"source":"aws.events","#, 1);
    let answer = accepting.invoke(&request).await.unwrap();
    assert_eq!(answer["statusCode"], 200, "{answer}");
}
