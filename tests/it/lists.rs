//! Lists over HTTP: conditional requests and compression.

use axum::body::{Body, Bytes};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use lambda_tools::{Failure, Protocol, Server, Tool, Toolkit};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{event, function, server};

/// A tool with this description.
fn tool(description: String) -> Tool {
    let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
    let input = json!({"type": "object"});
    Tool::dynamic("T.Wordy@1.0.0", description, input, Value::Null, nothing)
}

fn wordy(bytes: usize) -> Server {
    server(Toolkit::new([tool("x".repeat(bytes))]).unwrap())
}

/// A response of the router.
struct Got {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

async fn get_from(router: &axum::Router, path: &str, headers: &[(&str, &str)]) -> Got {
    let mut request = Request::get(path).header("oxp-version", "1.0");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    Got {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body: response.into_body().collect().await.unwrap().to_bytes(),
    }
}

async fn get(server: Server, path: &str, headers: &[(&str, &str)]) -> Got {
    get_from(&server.into_router().unwrap(), path, headers).await
}

/// The paths of all lists over GET.
const LISTS: &[&str] = &[
    "/tools",
    "/opentool/load",
    #[cfg(feature = "models")]
    "/tools?for=anthropic",
    #[cfg(feature = "openapi")]
    "/openapi.json",
];

#[tokio::test]
async fn a_list_is_not_sent_to_a_client_that_has_it() {
    let router = wordy(100).into_router().unwrap();
    for path in LISTS {
        let list = get_from(&router, path, &[]).await;
        assert_eq!(list.status, 200, "{path}");
        assert_eq!(list.header("cache-control"), "private, no-cache");
        assert!(list.header("vary").starts_with("accept-encoding"), "{path}");
        let tag = list.header("etag");
        assert!(tag.starts_with('"') && tag.ends_with('"'), "{path}: {tag}");
        let among_others = format!("\"a,b\", W/{tag}");
        for condition in [tag, &*among_others, "*"] {
            let current = get_from(&router, path, &[("if-none-match", condition)]).await;
            assert_eq!(current.status, 304, "{path} {condition}");
            assert!(current.body.is_empty());
            assert_eq!(current.header("etag"), tag);
            assert_eq!(current.header("cache-control"), "private, no-cache");
            assert_eq!(current.header("vary"), list.header("vary"));
            assert_eq!(current.header("content-type"), "");
        }
        for condition in ["\"other\"", "W/\"other\"", "", "nonsense"] {
            let whole = get_from(&router, path, &[("if-none-match", condition)]).await;
            assert_eq!(whole.status, 200, "{path} {condition}");
            assert_eq!(whole.body, list.body);
        }
    }
}

#[tokio::test]
async fn different_lists_have_different_tags() {
    let tag = async |server: Server, path, headers: &[_]| {
        let got = get(server, path, headers).await;
        got.header("etag").to_owned()
    };
    let one = tag(wordy(100), "/tools", &[]).await;
    assert_eq!(tag(wordy(100), "/tools", &[]).await, one);
    let opentool = tag(wordy(100), "/opentool/load", &[]).await;
    let changed = tag(wordy(101), "/tools", &[]).await;
    assert!(one != opentool && one != changed);
    let large = tag(wordy(20_000), "/tools", &[]).await;
    let compressed = tag(wordy(20_000), "/tools", &[("accept-encoding", "gzip")]).await;
    assert_ne!(large, compressed);
}

#[tokio::test]
async fn only_lists_over_get_are_conditional() {
    let mut event: Value =
        serde_json::from_str(&event("POST", "/tools/call", r#"{"tool_id": "T.Wordy"}"#)).unwrap();
    event["headers"]["if-none-match"] = "*".into();
    let function = function(wordy(20_000));
    let call = function.invoke(&event.to_string()).await.unwrap();
    assert_eq!(call["statusCode"], 200);
    assert_eq!(call["headers"]["etag"], Value::Null);

    let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
    event["rawPath"] = "/mcp".into();
    event["body"] = list.into();
    event["headers"]["accept"] = "application/json, text/event-stream".into();
    event["headers"]["accept-encoding"] = "gzip".into();
    let list = function.invoke(&event.to_string()).await.unwrap();
    assert_eq!(list["statusCode"], 200, "{list}");
    for header in ["etag", "content-encoding", "cache-control"] {
        assert_eq!(list["headers"][header], Value::Null, "{header}");
    }
    assert!(list["body"].as_str().unwrap().contains("xxxxx"));
}

fn gunzipped(body: &[u8]) -> Vec<u8> {
    assert_eq!(body[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    miniz_oxide::inflate::decompress_to_vec(&body[10..body.len() - 8]).unwrap()
}

#[tokio::test]
async fn a_large_list_is_compressed_for_clients_that_accept_it() {
    let router = wordy(20_000).into_router().unwrap();
    for path in LISTS {
        let plain = get_from(&router, path, &[]).await;
        assert_eq!(plain.header("content-encoding"), "");
        let accepting = ("accept-encoding", "br, gzip;q=0.5");
        let compressed = get_from(&router, path, &[accepting]).await;
        assert_eq!(compressed.status, 200, "{path}");
        assert_eq!(compressed.header("content-encoding"), "gzip");
        assert_eq!(compressed.header("content-type"), "application/json");
        assert_eq!(gunzipped(&compressed.body), plain.body, "{path}");
        let tag = compressed.header("etag");
        assert_ne!(tag, plain.header("etag"));
        // Either representation is current; the answer names the one that the client has.
        for has in [tag, plain.header("etag")] {
            let current = get_from(&router, path, &[accepting, ("if-none-match", has)]).await;
            assert_eq!(current.status, 304, "{path}");
            assert_eq!(current.header("etag"), has);
            assert_eq!(current.header("content-encoding"), "");
        }
        // Without the coding, its tag is that of a representation that the client cannot use.
        let other = get_from(&router, path, &[("if-none-match", tag)]).await;
        assert_eq!(other.status, 200, "{path}");
        for refusing in ["gzip;q=0", "identity, *;q=0", "br"] {
            let plain = get_from(&router, path, &[("accept-encoding", refusing)]).await;
            assert_eq!(plain.header("content-encoding"), "", "{refusing}");
        }
    }
    let small = get(wordy(10_000), "/tools", &[("accept-encoding", "gzip")]).await;
    assert_eq!(small.header("content-encoding"), "");
}

/// An event of this source that requests the list of tools.
fn listing(source: &str, accepted: &str) -> String {
    let mut request = json!({"httpMethod": "GET", "path": "/tools", "body": "",
                             "headers": {"oxp-version": "1.0", "accept-encoding": accepted},
                             "isBase64Encoded": false});
    match source {
        "rest" => {
            request["resource"] = "/{proxy+}".into();
            request["requestContext"] = json!({"path": "/tools", "stage": "x", "httpMethod": "GET",
                "identity": {}, "requestId": "1", "resourcePath": "/{proxy+}"});
        }
        "alb" => request["requestContext"] = json!({"elb": {}}),
        _ => {
            request = serde_json::from_str(&event("GET", "/tools", "")).unwrap();
            request["headers"]["accept-encoding"] = accepted.into();
        }
    }
    request.to_string()
}

#[tokio::test]
async fn an_event_source_gets_base64_only_if_it_decodes_it() {
    let function = function(wordy(20_000));
    for (source, decodes) in [("http", true), ("alb", true), ("rest", false)] {
        // Twice: first made, then kept.
        for _ in 0..2 {
            let event = listing(source, "gzip");
            let response = function.invoke(&event).await.unwrap();
            assert_eq!(response["statusCode"], 200, "{source}: {response}");
            assert_eq!(response["isBase64Encoded"], decodes, "{source}");
            let body = response["body"].as_str().unwrap();
            let body = if decodes {
                gunzipped(&BASE64_STANDARD.decode(body).unwrap())
            } else {
                body.as_bytes().to_vec()
            };
            let list: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(list["items"][0]["id"], "T.Wordy@1.0.0");
            let respond = function.respond(&event).await.unwrap();
            assert_eq!(respond.body, list, "{source}");
            let plain = function.invoke(&listing(source, "identity")).await.unwrap();
            assert_eq!(plain["body"].as_str().unwrap().as_bytes(), body);
            assert_eq!(plain["isBase64Encoded"], false);
        }
    }
}

#[tokio::test]
async fn a_list_that_is_too_large_as_it_is_can_be_sent_compressed() {
    let hint = "Clients that accept gzip (Accept-Encoding) can get it.";
    for (source, bytes) in [("http", 7_000_000), ("alb", 1_100_000)] {
        let function = function(wordy(bytes));
        let response = function.respond(&listing(source, "gzip")).await.unwrap();
        assert_eq!(response.status, 200, "{source}");
        assert_eq!(response.body["items"][0]["id"], "T.Wordy@1.0.0");
        // Preferred less, but the only one that can be sent.
        let event = listing(source, "identity, gzip;q=0.1");
        assert_eq!(function.respond(&event).await.unwrap().status, 200);
        let response = function.respond(&listing(source, "br")).await.unwrap();
        assert_eq!(response.status, 400);
        let detail = response.body["developer_message"].as_str().unwrap();
        assert!(detail.ends_with(hint), "{detail}");
    }
    let function = function(wordy(7_000_000));
    let response = function.respond(&listing("rest", "gzip")).await.unwrap();
    assert_eq!(response.status, 400);
    assert!(
        !response.body.to_string().contains("gzip"),
        "{:?}",
        response.body
    );
}

#[tokio::test]
async fn a_list_that_compression_does_not_make_smaller_is_sent_as_it_is() {
    // More than six bits of information in each byte: base64 needs more than eight for them.
    let mut state = 1_u32;
    let characters = std::iter::repeat_with(|| {
        // A linear congruential generator, of which the upper bits are random enough.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_u32(33 + (state >> 16) % 94).unwrap()
    });
    let characters = characters.filter(|it| !['"', '\\'].contains(it));
    let server = server(Toolkit::new([tool(characters.take(20_000).collect())]).unwrap());
    let list = get(server, "/tools", &[("accept-encoding", "gzip")]).await;
    assert_eq!(list.header("content-encoding"), "");
    assert_eq!(list.status, StatusCode::OK.as_u16());
}

#[tokio::test]
async fn a_layer_of_the_program_may_replace_the_body() {
    let replacing = |router: axum::Router| {
        router.layer(axum::middleware::map_response(
            async |response: axum::response::Response| response.map(|_| Body::from("replaced")),
        ))
    };
    let function = function(wordy(20_000).map_router(replacing));
    for accepted in ["identity", "gzip"] {
        let response = function.invoke(&listing("http", accepted)).await.unwrap();
        let body = response["body"].as_str().unwrap();
        let body = if response["isBase64Encoded"] == true {
            BASE64_STANDARD.decode(body).unwrap()
        } else {
            body.into()
        };
        assert_eq!(body, b"replaced");
    }
}

#[tokio::test]
async fn the_headers_of_a_list_are_those_of_its_protocol() {
    let oxp = get(wordy(100), "/tools", &[("if-none-match", "*")]).await;
    assert_eq!(oxp.header("oxp-version"), "1.0");
    assert_eq!(oxp.header("vary"), "accept-encoding, oxp-version");
    let only = wordy(100).protocols([Protocol::OpenTool]);
    let opentool = get(only, "/opentool/load", &[]).await;
    assert_eq!(opentool.header("vary"), "accept-encoding");
}
