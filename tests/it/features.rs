//! A Cargo feature that a program is compiled with changes nothing until the program, or a setting, asks
//! for it. The local server, which shows what it has, is in the toolbox's tests.

use lambda_tools::{Server, Toolkit, idempotency::Idempotency};
use serde_json::{Value, json};
use test_support::mcp::modern;

use crate::support::{self, function, idle, post, server};

/// What features serve, if they are asked to.
const PATHS: &str = "/ /explorer.json /openapi.json /authorize /token /register /revoke \
    /authorization/challenges/x /authorization/google/callback \
    /.well-known/oauth-protected-resource /.well-known/oauth-protected-resource/mcp \
    /.well-known/oauth-authorization-server /.well-known/openid-configuration \
    /.well-known/jwks.json";

/// Returns a server with a tool in the background, and a store of calls.
fn plain() -> Server {
    let tool = idle("Act.Do@1.0.0", "Acts.").background();
    server(Toolkit::new([tool]).unwrap()).idempotency(Idempotency::in_memory())
}

#[tokio::test]
async fn no_feature_adds_a_route_by_itself() {
    let router = plain().into_router().unwrap();
    for path in PATHS.split(' ') {
        let page = support::send(&router, "GET", path, &[], "").await;
        assert_eq!(page.status, 404, "{path}");
        assert!(!page.body.contains("openapi"), "{}", page.body);
    }
}

/// Sends a request of an MCP client that takes tasks.
async fn asked(server: Server, method: &str, params: Value) -> Value {
    let extensions = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let (headers, body) = modern(method, params, extensions);
    let headers: Vec<_> = headers.iter().map(|(name, it)| (*name, &**it)).collect();
    let mut response = post(&function(server), "/mcp", &headers, &body).await;
    response.body["result"].take()
}

#[tokio::test]
async fn no_feature_moves_a_call_by_itself() {
    let discovered = asked(plain(), "server/discover", json!({})).await;
    assert_eq!(discovered["capabilities"], json!({"tools": {}}));
    let params = json!({"name": "Act_Do", "arguments": {}});
    let result = asked(plain(), "tools/call", params).await;
    assert_eq!(result["resultType"], "complete", "{result}");
    // An event that starts a task is as unknown as any other.
    let event = r#"{"lambda_tools": {"task": "x", "code": "y"}}"#;
    let error = function(plain()).invoke(event).await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("the event has the fields lambda_tools"),
        "{error}"
    );
}

#[cfg(feature = "openapi")]
#[tokio::test]
async fn the_last_call_decides_if_the_document_is_served() {
    let server = plain().serve_openapi(true).serve_openapi(false);
    let router = server.into_router().unwrap();
    let page = support::send(&router, "GET", "/openapi.json", &[], "").await;
    assert_eq!(page.status, 404);
}
