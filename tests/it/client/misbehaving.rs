//! Responses that do not follow the protocol, and the errors that they become.

use axum::body::{Body, Bytes};
use futures_util::stream;

use super::{FakeRequest, FakeServer, JSON, answer, errors_of, once, oxp};

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
