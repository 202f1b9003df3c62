//! The router by itself, as in a user's own server.

use axum::{body::Body, routing::get};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use lambda_http::RequestExt;
use lambda_tools::{Server, Toolkit};
use serde_json::Value;
use tower::ServiceExt;

use crate::support::{event, function, server};

#[tokio::test]
async fn the_router_is_an_extensible_tower_service() {
    let with_about = |router: axum::Router| router.route("/about", get(|| async { "ours" }));
    let router = server(Toolkit::new([]).unwrap())
        .map_router(with_about)
        .into_router()
        .unwrap();
    for (path, status) in [("/about", StatusCode::OK), ("/tools", StatusCode::OK)] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
    }
}

#[cfg(not(feature = "explorer"))]
#[tokio::test]
async fn without_the_feature_there_is_no_explorer() {
    let router = server(Toolkit::new([]).unwrap()).into_router().unwrap();
    for path in ["/", "/explorer.json"] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["message"], "There is nothing at this path");
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_rejected() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let limited = server(Toolkit::new([]).unwrap()).max_request_size(ping.len());
    let function = function(limited);
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
    let router = server(Toolkit::new([]).unwrap()).into_router().unwrap();
    let body = Body::from(vec![b' '; 6_291_557]);
    let request = Request::post("/tools/call").body(body).unwrap();
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["message"], "The request is too large");
}

#[tokio::test]
async fn an_empty_toolkit_lists_no_tools() {
    let function = function(Toolkit::new([]).unwrap());
    let response = function.respond(&event("GET", "/tools", "")).await.unwrap();
    assert_eq!(response.body, serde_json::json!({"items": []}));
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
    let function = function(Server::new(Toolkit::new([]).unwrap()).map_router(routes));
    let response = function
        .respond(&event("GET", "/source", ""))
        .await
        .unwrap();
    assert_eq!(response.body, "192.0.2.1 true");
}

#[tokio::test]
async fn a_list_too_large_for_both_dialects_is_sent_in_one() {
    async fn nothing(_: Value) -> Result<Value, lambda_tools::Failure> {
        Ok(Value::Null)
    }
    let list = async |description: usize| {
        let text = "x".repeat(description);
        let input = serde_json::json!({"type": "object"});
        let tool = lambda_tools::Tool::dynamic("T.T@1.0.0", text, input, Value::Null, nothing);
        let router = server(Toolkit::new([tool]).unwrap()).into_router().unwrap();
        let request = Request::get("/tools").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        (
            status,
            body.get("items").is_some(),
            body.get("tools").is_some(),
        )
    };
    assert_eq!(list(3_000_000).await, (200, true, true));
    assert_eq!(list(4_000_000).await, (200, true, false));
    assert_eq!(list(7_000_000).await, (400, false, false));
}
