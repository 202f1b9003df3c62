//! Lists over HTTP: conditional requests, and lists that are too large.

use lambda_tools::{Server, Toolkit};
use serde_json::json;

use crate::support::{event, function, idle, post, send, server};

/// Creates a server with a tool whose description has this many bytes.
fn wordy(bytes: usize) -> Server {
    let tool = idle("T.Wordy@1.0.0", "x".repeat(bytes));
    server(Toolkit::new([tool]).unwrap())
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
    let mut tags = Vec::new();
    for (path, _) in LISTS {
        for (router, headers) in [
            (&router, &[][..]),
            (&changed, &[]),
            (&router, &[("oxp-version", "1.0")]),
        ] {
            let list = send(router, "GET", path, headers, "").await;
            tags.push((list.body, list.headers["etag"].clone()));
        }
    }
    for (body, tag) in &tags {
        let same = tags.iter().filter(|(it, _)| it == body);
        let same_tag = tags.iter().filter(|(_, it)| it == tag);
        assert_eq!(same.count(), same_tag.count(), "{tag:?}");
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

#[tokio::test]
async fn a_list_that_is_too_large_to_send_is_an_error_that_says_so() {
    let detail = "The list of tools is larger than the event source of this function can send.";
    for (is_load_balancer, bytes) in [(false, 7_000_000), (true, 1_100_000)] {
        let function = function(wordy(bytes));
        for (path, message) in [
            ("/tools", "The list of tools cannot be sent"),
            #[cfg(feature = "openapi")]
            ("/openapi.json", "The OpenAPI document cannot be sent"),
        ] {
            let context = json!({"elb": {}});
            let of_load_balancer =
                json!({"requestContext": context, "httpMethod": "GET", "path": path}).to_string();
            let http_api = event("GET", path, "");
            let event = if is_load_balancer {
                of_load_balancer
            } else {
                http_api
            };
            let response = function.respond(&event).await.unwrap();
            assert_eq!(response.status, 400, "{path}");
            assert_eq!(response.body["message"], message);
            assert_eq!(response.body["developer_message"], detail);
        }
    }
}
