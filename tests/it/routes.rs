//! The router, as a function and in a user's own server: its lists, its limits, a program's own routes,
//! and what browsers let web pages of other origins send and read on every path.

use std::collections::BTreeSet;

use axum::{Router, routing::get};
use http::HeaderMap;
use lambda_http::{RequestExt, request::RequestContext};
use lambda_tools::{ApiKeys, Server, Toolkit, secrets::Secrets};
use serde_json::{Value, json};

use crate::support::{self, event, function, idle, post, send, server};

fn empty() -> Server {
    server(Toolkit::new([]).unwrap())
}

/// `events/mcp-unhealthy` has its calls.
#[tokio::test]
async fn an_unhealthy_server_reports_it() {
    let router = empty().healthy_when(|| false).into_router().unwrap();
    assert_eq!(send(&router, "GET", "/health", &[], "").await.status, 503);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_rejected() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let function = function(empty().max_request_size(ping.len()));
    for (path, body, status) in [
        ("/mcp", ping.to_owned(), 200),
        ("/mcp", format!("{ping} "), 413),
        ("/tools/call", format!("{ping} "), 400),
    ] {
        let response = function.respond(&event("POST", path, &body)).await.unwrap();
        assert_eq!(response.status, status, "{path} {body:?}");
        let is_too_large = response.body["message"] == "The request is too large";
        assert_eq!(is_too_large, path == "/tools/call", "{response:?}");
    }
    let router = empty().into_router().unwrap();
    let body = " ".repeat(6_291_557);
    let response = send(&router, "POST", "/tools/call", &[], body).await;
    assert_eq!(response.status, 400);
    assert_eq!(response.json()["message"], "The request is too large");
}

#[tokio::test]
async fn custom_routes_have_access_to_the_event() {
    async fn source(request: axum::extract::Request) -> String {
        let lambda = request.lambda_context_ref().is_some();
        let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else {
            return "another source".to_owned();
        };
        format!("{:?} {lambda}", context.http.source_ip)
    }
    let routes = |router: Router| router.route("/source", get(source));
    let function = function(empty().map_router(routes));
    let response = support::get(&function, "/source").await;
    assert_eq!(response.body, r#"Some("192.0.2.1") true"#);
}

/// Creates a server with a tool whose description has this many bytes.
fn wordy(bytes: usize) -> Server {
    let tool = idle("T.Wordy@1.0.0", "x".repeat(bytes));
    let server = server(Toolkit::new([tool]).unwrap());
    #[cfg(feature = "openapi")]
    let server = server.serve_openapi(true);
    server
}

/// The paths of all lists over GET, and the headers that they vary by.
const LISTS: &[(&str, &str)] = &[
    ("/tools", "oxp-version"),
    ("/opentool/load", ""),
    #[cfg(feature = "openapi")]
    ("/openapi.json", "oxp-version"),
];

#[tokio::test]
async fn a_list_is_not_sent_to_a_client_that_has_it() {
    let router = wordy(20_000).into_router().unwrap();
    for (path, vary) in LISTS {
        let list = send(&router, "GET", path, &[("accept-encoding", "gzip")], "").await;
        let tag = list.header("etag");
        assert!(tag.starts_with('"') && tag.ends_with('"'), "{path}: {tag}");
        assert_eq!(list.header("content-encoding"), "", "{path}");
        let among_others = format!("\"a,b\", \"a b\", W/{tag}");
        for (condition, status) in [
            ("\"other\"", 200),
            ("W/\"other\", \"a, *, b\"", 200),
            ("", 200),
            ("nonsense", 200),
            (tag, 304),
            (&among_others, 304),
            ("*", 304),
        ] {
            let headers = [("if-none-match", condition)];
            let got = send(&router, "GET", path, &headers, "").await;
            assert_eq!(got.status, status, "{path} {condition}");
            assert_eq!(got.header("etag"), tag);
            assert_eq!(got.header("cache-control"), "private, no-cache");
            assert_eq!(got.header("vary"), *vary, "{path}");
            if status == 200 {
                assert_eq!(got.header("content-type"), "application/json");
                assert_eq!(got.body, list.body);
            } else {
                assert_eq!(got.header("content-type"), "");
                assert!(got.body.is_empty());
            }
        }
    }
}

#[tokio::test]
async fn different_lists_have_different_tags() {
    let [router, changed] = [100, 101].map(|bytes| wordy(bytes).into_router().unwrap());
    for (path, _) in LISTS {
        let version = &[("oxp-version", "1.0")][..];
        let (mut lists, mut tags) = (BTreeSet::new(), BTreeSet::new());
        for (router, headers) in [(&router, &[][..]), (&changed, &[]), (&router, version)] {
            let list = send(router, "GET", path, headers, "").await;
            tags.insert(list.header("etag").to_owned());
            lists.insert(list.body);
        }
        assert!(lists.len() > 1 && lists.len() == tags.len(), "{path}");
    }
}

#[tokio::test]
async fn only_lists_over_get_are_conditional() {
    let function = function(wordy(20_000));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let call = json!({"tool_id": "T.Wordy"});
    for (path, body) in [("/tools/call", call), ("/mcp", list)] {
        let response = post(&function, path, &[("if-none-match", "*")], &body).await;
        assert_eq!(response.status, 200, "{path}");
        for header in ["etag", "cache-control", "vary"] {
            assert!(!response.headers.contains_key(header), "{path} {header}");
        }
    }
}

#[tokio::test]
async fn a_list_larger_than_a_page_is_read_in_pages() {
    let tools = (0..5).map(|number| idle(format!("T.T{number}@1.0.0"), "x".repeat(400_000)));
    let function = function(server(Toolkit::new(tools).unwrap()));
    let (mut params, mut names) = (json!({}), Vec::new());
    for has_next in [true, true, false] {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params});
        let result = post(&function, "/mcp", &[], &list).await.body["result"].take();
        let tools = result["tools"].as_array().unwrap().iter();
        names.extend(tools.map(|tool| tool["name"].as_str().unwrap().to_owned()));
        assert_eq!(result["nextCursor"].is_string(), has_next, "{names:?}");
        params = json!({"cursor": result["nextCursor"]});
    }
    assert_eq!(names, ["T_T0", "T_T1", "T_T2", "T_T3", "T_T4"]);
}

/// A list for no version has both dialects, or the one that fits.
#[tokio::test]
async fn a_list_that_is_too_large_to_send_is_an_error_that_says_so() {
    for (bytes, has_both) in [
        (3_000_000, [true, true]),
        (4_000_000, [true, false]),
        (7_000_000, [false, false]),
    ] {
        let router = wordy(bytes).into_router().unwrap();
        let list = send(&router, "GET", "/tools", &[], "").await.json();
        let has = ["items", "tools"].map(|name| list.get(name).is_some());
        assert_eq!(has, has_both, "{bytes}");
    }
    let detail = "The list of tools is larger than the event source of this function can send.";
    for (is_load_balancer, bytes) in [(false, 7_000_000), (true, 1_100_000)] {
        let function = function(wordy(bytes));
        for (path, message) in [
            ("/tools", "The list of tools cannot be sent"),
            #[cfg(feature = "openapi")]
            ("/openapi.json", "The OpenAPI document cannot be sent"),
        ] {
            let balanced =
                json!({"requestContext": {"elb": {}}, "httpMethod": "GET", "path": path});
            let events = [event("GET", path, ""), balanced.to_string()];
            let event = &events[usize::from(is_load_balancer)];
            let response = function.respond(event).await.unwrap();
            assert_eq!(response.status, 400, "{path}");
            assert_eq!(response.body["message"], message);
            assert_eq!(response.body["developer_message"], detail);
        }
    }
}

const PAGE: &str = "https://app.example";
const KEY: &str = "key-of-the-caller-1";

/// Returns a server that knows one page.
fn with_page() -> Server {
    server(Toolkit::new([idle("T.T@1.0.0", "A tool.")]).unwrap())
        .auth(ApiKeys::with_ids(["KEY"]))
        .secrets(Secrets::fixed([("KEY", KEY)]))
        .allowed_origins([PAGE])
}

/// Returns the status and the headers of a response of the server that knows one page.
async fn headers_of(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &'static str,
) -> (u16, HeaderMap) {
    let own = |router: Router| router.route("/own", get(async || "own"));
    let router = with_page().map_router(own).into_router().unwrap();
    let response = send(&router, method, path, headers, body).await;
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

const PATHS: &str = "/mcp /mcp/ /tools /tools/ /tools/call /tools/T.T/call /call /openapi.json \
    /health /opentool/version /opentool/load /opentool/call /nothing /";

/// Fetch, CORS protocol. Browsers send no credentials with the question.
#[tokio::test]
async fn preflight_requests_of_allowed_pages_are_answered_on_every_path() {
    let asked = "authorization, mcp-param-x, x-anything";
    for path in PATHS.split(' ') {
        for origin in [PAGE, "http://localhost:6274"] {
            let headers = [
                ("origin", origin),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", asked),
            ];
            let (status, headers) = headers_of("OPTIONS", path, &headers, "").await;
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
        let (answered, headers) = headers_of(method, path, sent, "").await;
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
        let (_, headers) = headers_of("GET", path, &sent[1..], "").await;
        assert!(cors_headers(&headers).is_empty(), "no page: {path}");
    }
}

/// Other pages may neither send nor read. A program's routes keep their own rules.
#[tokio::test]
async fn other_pages_and_other_routes_get_no_cors_headers() {
    let key = format!("Bearer {KEY}");
    let asked = ("access-control-request-method", "POST");
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
        let headers = [("origin", origin), asked, ("authorization", &key)];
        let (answered, headers) = headers_of(method, path, &headers, "").await;
        assert_eq!(answered, status, "{origin} {path}");
        assert!(cors_headers(&headers).is_empty(), "{origin} {path}");
    }
}

/// A page of the server itself may call it, at the URL of the request and at the public one.
#[tokio::test]
async fn pages_of_the_server_itself_may_send() {
    let function = function(with_page().public_url("https://public.example/agents"));
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
    let key = format!("Bearer {KEY}");
    let credentials = ("authorization", &*key);
    let json = ("content-type", "application/json");
    for path in ["/mcp", "/tools/call", "/tools/T.T/call", "/opentool/call"] {
        for (encoding, body, is_refused) in [
            ("gzip", "{}", true),
            ("identity, zstd", "{}", true),
            ("identity", "{}", false),
            ("gzip", "", false),
        ] {
            let headers = [("content-encoding", encoding), credentials, json];
            let (status, headers) = headers_of("POST", path, &headers, body).await;
            assert_eq!(status == 415, is_refused, "{path} {encoding}");
            let accepted = is_refused.then_some("identity").into_iter();
            assert!(values(&headers, "accept-encoding").iter().eq(accepted));
        }
    }
}

/// `events/direct` has a call whose fields come after those of a warm-up.
#[tokio::test]
async fn an_event_with_the_fields_of_a_warm_up_and_of_another_kind_is_the_other() {
    let accepting = function(with_page());
    let call = json!({"tool_id": "T.T", "input": {}, "warmer": true});
    let answer = accepting.invoke(&call.to_string()).await.unwrap();
    assert_eq!(answer["success"], true, "{answer}");
    let request = event("GET", "/health", "").replacen('{', r#"{"source":"aws.events","#, 1);
    let answer = accepting.invoke(&request).await.unwrap();
    assert_eq!(answer["statusCode"], 200, "{answer}");
}
