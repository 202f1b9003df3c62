//! The router by itself, as in a user's own server.

use axum::{body::Body, routing::get};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use lambda_http::RequestExt;
use lambda_tools::{Failure, Server, Tool, Toolkit};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{event, function, server};

fn empty() -> Server {
    server(Toolkit::new([]).unwrap())
}

async fn send(server: Server, request: Request<Body>) -> Response<Body> {
    let router = server.into_router().unwrap();
    router.oneshot(request).await.unwrap()
}

fn request(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

async fn json_of(response: Response<Body>) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn the_router_is_an_extensible_tower_service() {
    for (path, status) in [("/about", 200), ("/tools", 200), ("/nothing", 404)] {
        let about = |router: axum::Router| router.route("/about", get(|| async { "ours" }));
        let response = send(empty().map_router(about), request(path)).await;
        assert_eq!(response.status(), status, "{path}");
    }
    let response = send(empty(), request("/tools")).await;
    assert_eq!(json_of(response).await["items"], json!([]));
}

#[cfg(not(feature = "explorer"))]
#[tokio::test]
async fn without_the_feature_there_is_no_explorer() {
    for path in ["/", "/explorer.json"] {
        let response = send(empty(), request(path)).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        let body = json_of(response).await;
        assert_eq!(body["message"], "There is nothing at this path");
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
    let body = Body::from(vec![b' '; 6_291_557]);
    let response = send(empty(), Request::post("/tools/call").body(body).unwrap()).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(
        json_of(response).await["message"],
        "The request is too large"
    );
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
    let response = function.respond(&event("GET", "/source", "")).await;
    assert_eq!(response.unwrap().body, "192.0.2.1 true");
}

#[tokio::test]
async fn a_list_too_large_for_both_dialects_is_sent_in_one() {
    for (bytes, expected) in [
        (3_000_000, (200, true, true)),
        (4_000_000, (200, true, false)),
        (7_000_000, (400, false, false)),
    ] {
        let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
        let (text, input) = ("x".repeat(bytes), json!({"type": "object"}));
        let tool = Tool::dynamic("T.T@1.0.0", text, input, Value::Null, nothing);
        let response = send(server(Toolkit::new([tool]).unwrap()), request("/tools")).await;
        let status = response.status().as_u16();
        let body = json_of(response).await;
        let has = |name: &str| body.get(name).is_some();
        assert_eq!((status, has("items"), has("tools")), expected);
    }
}
