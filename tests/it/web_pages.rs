//! Web pages of other origins: what browsers let them send and read, on every path.

use axum::{Router, body::Body, routing::get};
use http::{HeaderMap, Method, Request};
use lambda_tools::{ApiKeys, EventKind, Failure, Server, Tool, Toolkit, secrets::Secrets};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{event, function, server};

const PAGE: &str = "https://app.example";
const KEY: &str = "key-of-the-caller-1";

fn tools() -> Server {
    let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
    let input = json!({"type": "object"});
    let tool = Tool::dynamic("T.T@1.0.0", "A tool.", input, Value::Null, nothing);
    let secrets = Secrets::fixed([("KEY", KEY)]);
    server(Toolkit::new([tool]).unwrap())
        .auth(ApiKeys::with_ids(["KEY"]))
        .secrets(secrets)
        .allowed_origins([PAGE])
}

/// The status and the headers of a response.
type Answer = (u16, HeaderMap);

async fn send(method: Method, path: &str, headers: &[(&str, &str)], body: &'static str) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body)).unwrap();
    let own = |router: Router| router.route("/own", get(async || "own"));
    let router = tools().map_router(own).into_router().unwrap();
    let response = router.oneshot(request).await.unwrap();
    (response.status().as_u16(), response.headers().clone())
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
            let (status, headers) = send(Method::OPTIONS, path, &headers, "").await;
            assert_eq!(status, 204, "{path} {origin}");
            let value = |name| values(&headers, name);
            assert_eq!(headers["access-control-allow-origin"], origin);
            assert_eq!(value("access-control-allow-headers"), [asked]);
            let methods = value("access-control-allow-methods").concat();
            assert!(
                ["get", "post"].iter().all(|it| methods.contains(it)),
                "{methods}"
            );
            assert_eq!(value("vary"), ["origin"]);
            assert!(!headers.contains_key("access-control-allow-credentials"));
        }
    }
}

#[tokio::test]
async fn allowed_pages_may_read_every_response() {
    let key = format!("Bearer {KEY}");
    for (method, path, credentials, status) in [
        (Method::GET, "/tools", "", 401),
        (Method::GET, "/tools", &*key, 200),
        (Method::POST, "/mcp", "", 401),
        (Method::POST, "/mcp", &key, 415),
        (Method::GET, "/mcp", &key, 405),
        (Method::POST, "/tools/call", "Bearer wrong", 401),
        (Method::POST, "/tools/call", &key, 400),
        (Method::GET, "/tools/call", "", 405),
        (Method::GET, "/health/", "", 200),
        (Method::GET, "/opentool/load", "", 401),
        (Method::GET, "/nothing", "", 404),
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
        let (_, headers) = send(Method::GET, path, &sent[1..], "").await;
        assert!(cors_headers(&headers).is_empty(), "no page: {path}");
    }
}

#[tokio::test]
async fn other_pages_may_neither_send_nor_read() {
    let key = format!("Bearer {KEY}");
    for origin in ["https://evil.example", "null"] {
        for (method, path, status) in [
            (Method::OPTIONS, "/mcp", 403),
            (Method::OPTIONS, "/tools", 405),
            (Method::POST, "/mcp", 403),
            (Method::GET, "/tools", 403),
            (Method::GET, "/health", 200),
            (Method::OPTIONS, "/nothing", 404),
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

/// A program's routes keep their own rules.
#[tokio::test]
async fn routes_that_the_program_adds_get_no_cors_headers() {
    for (method, status) in [(Method::GET, 200), (Method::OPTIONS, 405)] {
        let (answered, headers) = send(method, "/own", &[("origin", PAGE)], "").await;
        assert_eq!(answered, status);
        assert!(cors_headers(&headers).is_empty());
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
            let (status, headers) = send(Method::POST, path, &headers, body).await;
            assert_eq!(status == 415, is_refused, "{path} {encoding}");
            let accepted = is_refused.then_some("identity").into_iter();
            assert!(values(&headers, "accept-encoding").iter().eq(accepted));
        }
    }
}

/// An event that only keeps an instance warm is no error, unless the function accepts none.
/// `events/sources` has those that are accepted.
#[tokio::test]
async fn warm_ups_run_nothing_and_can_be_refused() {
    let accepting = function(tools());
    let refusing = function(tools().events([EventKind::Direct, EventKind::FunctionUrl]));
    for event in ["{}", r#"{"warmer": true}"#] {
        let error = refusing.invoke(event).await.unwrap_err().to_string();
        assert!(error.contains("'warm-up'"), "{error}");
    }
    for other in [
        r#"{"warmer": false}"#,
        r#"{"warmer": "true"}"#,
        r#"{"source": "aws.s3", "detail": {}}"#,
        r#"{"source": ["aws.events"]}"#,
        r#"{"detail": {"source": "aws.events"}}"#,
    ] {
        let error = accepting.invoke(other).await.unwrap_err().to_string();
        let start = "This function answers HTTP requests";
        assert!(error.starts_with(start), "{other} {error}");
    }
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
