//! The router by itself, as in a user's own server.

use axum::routing::get;
use lambda_http::RequestExt;
use lambda_tools::{Server, Toolkit};
use serde_json::json;

use crate::support::{self, event, function, idle, send, server};

fn empty() -> Server {
    server(Toolkit::new([]).unwrap())
}

#[tokio::test]
async fn the_router_is_an_extensible_tower_service() {
    for (path, status) in [("/about", 200), ("/tools", 200), ("/nothing", 404)] {
        let about = |router: axum::Router| router.route("/about", get(|| async { "ours" }));
        let router = empty().map_router(about).into_router().unwrap();
        let response = send(&router, "GET", path, &[], "").await;
        assert_eq!(response.status, status, "{path}");
        if path == "/tools" {
            assert_eq!(response.json()["items"], json!([]));
        }
    }
}

#[cfg(not(feature = "explorer"))]
#[tokio::test]
async fn without_the_feature_there_is_no_explorer() {
    for path in ["/", "/explorer.json"] {
        let response = send(&empty().into_router().unwrap(), "GET", path, &[], "").await;
        assert_eq!(response.status, 404, "{path}");
        assert_eq!(response.json()["message"], "There is nothing at this path");
    }
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
        let context = request.request_context_ref();
        let lambda = request.lambda_context_ref().is_some();
        let address = match context {
            Some(lambda_http::request::RequestContext::ApiGatewayV2(context)) => {
                context.http.source_ip.clone()
            }
            _ => None,
        };
        format!("{} {lambda}", address.unwrap_or_default())
    }
    let routes = |router: axum::Router| router.route("/source", get(source));
    let function = function(empty().map_router(routes));
    let response = support::get(&function, "/source").await;
    assert_eq!(response.body, "192.0.2.1 true");
}

#[tokio::test]
async fn a_list_too_large_for_both_dialects_is_sent_in_one() {
    for (bytes, expected) in [
        (3_000_000, (200, true, true)),
        (4_000_000, (200, true, false)),
        (7_000_000, (400, false, false)),
    ] {
        let tool = idle("T.T@1.0.0", "x".repeat(bytes));
        let router = server(Toolkit::new([tool]).unwrap()).into_router().unwrap();
        let response = send(&router, "GET", "/tools", &[], "").await;
        let body = response.json();
        let has = |name: &str| body.get(name).is_some();
        assert_eq!((response.status, has("items"), has("tools")), expected);
    }
}
