//! The OXP client against servers of every dialect, and against misbehaving servers.

use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use futures_util::stream;
use lambda_tools::client::{
    ClientError, ClientOptions,
    oxp::{
        AuthorizationChallenge, CallOutcome, CallRequest, ChallengeDecision, Dialect, OxpClient,
    },
};
use serde_json::{Value, json};

use super::{FakeServer, JSON, answer, now, once, oxp, soon};

const FIFTEEN: &str = r#"{"call_id": "c", "success": true, "duration": 1.5, "value": 15}"#;

fn client(server: &FakeServer) -> OxpClient {
    oxp(&server.url(), ClientOptions::default())
}

fn add() -> CallRequest {
    CallRequest::new("Calculator.Add").input(json!({"a": 10, "b": 5}))
}

fn call_ids(server: &FakeServer) -> Vec<String> {
    let id = |body: Value| body["call_id"].as_str().unwrap().to_owned();
    server
        .requests()
        .iter()
        .map(|it| id(it.message()))
        .collect()
}

async fn slow() -> FakeServer {
    FakeServer::start(|_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            answer(200, JSON, FIFTEEN)
        })
    })
    .await
}

/// Sends a call that has this HTTP status for its error.
async fn assert_status(client: OxpClient, expected: u16) {
    let error = soon(client.call(&add())).await.unwrap_err();
    assert!(
        matches!(error, ClientError::Status { status, .. } if status == expected),
        "{error}"
    );
}

#[tokio::test]
async fn calls_are_sent_and_responses_read_in_each_dialect() {
    let envelope = |schema: &str| format!(r#"{{"$schema": "{schema}", "result": {FIFTEEN}}}"#);
    for (dialect, schema) in [
        (Dialect::Header, None),
        (Dialect::Schema, Some("urn:oxp:1.0")),
        (Dialect::Otc, Some("otc://1.0")),
    ] {
        let body = schema.map_or(FIFTEEN.to_owned(), envelope);
        let server = FakeServer::fixed(200, JSON, body).await;
        let call = add().user_id("u").token("google", "t").secret("K", "v");
        let reply = client(&server).dialect(dialect).call(&call).await.unwrap();
        assert_eq!(reply.outcome.value(), Some(json!(15)), "{dialect:?}");
        assert_eq!(reply.duration, Some(Duration::from_micros(1500)));
        let sent = &server.requests()[0];
        assert_eq!(
            (sent.method.as_str(), sent.path.as_str()),
            ("POST", "/tools/call")
        );
        let mut body = sent.message();
        assert_eq!(body.get("$schema").and_then(Value::as_str), schema);
        let version = sent.header("oxp-version");
        assert_eq!(version, schema.is_none().then_some("1.0"));
        let mut request = if schema.is_some() {
            body["request"].take()
        } else {
            body
        };
        assert_eq!(request["call_id"].take().as_str().map(str::len), Some(36));
        assert_eq!(
            request,
            json!({"tool_id": "Calculator.Add", "call_id": null, "input": {"a": 10, "b": 5},
                "context": {"user_id": "u", "authorization": [{"id": "google", "token": "t"}],
                    "secrets": [{"id": "K", "value": "v"}]}})
        );
    }
}

#[tokio::test]
async fn lists_are_read_in_every_dialect() {
    let bare = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    let tool = |schema: Value| {
        json!([{"id": "A.B@1.0.0", "name": "A_B", "description": "D.", "version": "1.0.0",
            "input_schema": schema, "output_schema": null,
            "requirements": {"authorization": null, "secrets": [{"id": "K"}]}}])
    };
    let wrapped = json!({"parameters": bare});
    for list in [
        json!({"items": tool(bare.clone())}),
        json!({"$schema": "urn:oxp:1.0", "items": tool(bare.clone()), "tools": tool(wrapped.clone())}),
        json!({"$schema": "urn:oxp:1.0", "tools": tool(wrapped.clone())}),
        json!({"$schema": "otc://1.0", "tools": tool(wrapped.clone())}),
        json!({"items": tool(wrapped)}),
    ] {
        let server = FakeServer::fixed(200, JSON, list.to_string()).await;
        let tools = client(&server).tools().await.unwrap();
        assert_eq!(tools[0].input_schema, bare, "{list}");
        assert_eq!(tools[0].requirements.secrets[0].id, "K");
    }
}

#[tokio::test]
async fn a_call_that_fails_twice_is_sent_three_times_with_one_id() {
    for status in [503, 500, 429, 408] {
        let server = FakeServer::start(move |number, _| {
            now(match number {
                0 | 1 => answer(status, &[("retry-after", "0")], "busy"),
                _ => answer(200, JSON, FIFTEEN),
            })
        })
        .await;
        let reply = client(&server).call(&add()).await.unwrap();
        assert_eq!(
            (reply.attempts, reply.outcome.value()),
            (3, Some(json!(15)))
        );
        let ids = call_ids(&server);
        assert!(
            ids.len() == 3 && ids[0] == ids[1] && ids[1] == ids[2],
            "{ids:?}"
        );
    }
}

#[tokio::test]
async fn the_server_decides_if_a_call_is_retried() {
    let temporary = r#"{"message": "not now"}"#;
    let yes = &[
        ("content-type", "application/json"),
        ("x-should-retry", "true"),
        ("retry-after", "0"),
    ];
    let server = FakeServer::start(move |number, _| {
        now(match number {
            0 => answer(400, yes, temporary),
            _ => answer(200, JSON, FIFTEEN),
        })
    })
    .await;
    assert_eq!(client(&server).call(&add()).await.unwrap().attempts, 2);
    for (status, headers) in [
        (503, &[("x-should-retry", "false")][..]),
        (409, &[]),
        (400, JSON),
    ] {
        let server = FakeServer::fixed(status, headers, r#"{"message": "no"}"#).await;
        let _ = client(&server).call(&add()).await;
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn retries_end_after_the_attempts_and_before_the_deadline() {
    let server = FakeServer::fixed(503, &[("retry-after", "0")], "busy").await;
    let thrice = ClientOptions::default().attempts(3);
    assert_status(oxp(&server.url(), thrice), 503).await;
    assert_eq!(server.requests().len(), 3);
    // The client does not begin a wait that would end after the deadline.
    let server = FakeServer::fixed(429, &[("retry-after", "3600")], "busy").await;
    let begun = Instant::now();
    assert_status(client(&server), 429).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_call_to_a_slow_server_times_out_and_is_retried() {
    let server = slow().await;
    let begun = Instant::now();
    let options = ClientOptions::default()
        .timeout(Duration::from_millis(200))
        .deadline(Duration::from_secs(2));
    let client = oxp(&server.url(), options);
    let error = soon(client.call(&add())).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::Unreachable(text) if text.contains("in time")),
        "{error}"
    );
    assert!(begun.elapsed() < Duration::from_secs(4));
    let ids = call_ids(&server);
    assert!(ids.len() > 1 && ids.iter().all(|id| *id == ids[0]));
}

#[tokio::test]
async fn a_malformed_response_is_an_error_and_not_a_panic() {
    let html = &[("content-type", "text/html")][..];
    for (status, headers, body) in [
        (200, JSON, r#"{"call_id": "c", "success": true, "val"#),
        (200, JSON, ""),
        (200, JSON, "null"),
        (200, JSON, "[]"),
        (200, JSON, "{}"),
        (200, JSON, r#"{"success": true, "error": {"message": "m"}}"#),
        (200, JSON, r#"{"success": false}"#),
        (
            200,
            JSON,
            r#"{"success": false, "error": {"can_retry": true}}"#,
        ),
        (200, JSON, r#"{"success": "yes", "value": 1}"#),
        (200, html, FIFTEEN),
    ] {
        let server = FakeServer::fixed(status, headers, body).await;
        let error = client(&server).call(&add()).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Unreadable(_)),
            "{body}: {error:?}"
        );
        let error = client(&server).tools().await.unwrap_err();
        assert!(
            matches!(
                error,
                ClientError::Unreadable(_) | ClientError::Status { .. }
            ),
            "{body}: {error:?}"
        );
    }
}

/// Gateways and proxies respond in formats of their own.
#[tokio::test]
async fn an_error_status_without_a_protocol_body_is_a_status_error() {
    let html = &[("content-type", "text/html")][..];
    for (status, headers, body) in [
        (400, html, "<html>"),
        (400, JSON, ""),
        (400, JSON, r#"{"message": null}"#),
        (422, JSON, r#"{"message": 5}"#),
    ] {
        let server = FakeServer::fixed(status, headers, body).await;
        assert_status(client(&server), status).await;
    }
    let long = format!(r#"{{"message": "{}"}}"#, "é".repeat(10_000));
    let server = FakeServer::fixed(404, JSON, long).await;
    let error = client(&server).call(&add()).await.unwrap_err();
    assert!(error.to_string().len() < 600);
}

#[tokio::test]
async fn the_deadline_also_limits_a_single_attempt() {
    let server = slow().await;
    let begun = Instant::now();
    let options = ClientOptions::default().deadline(Duration::from_millis(300));
    let client = oxp(&server.url(), options);
    assert!(soon(client.call(&add())).await.is_err());
    assert!(begun.elapsed() < Duration::from_secs(3));
    let client = client.challenge_polling(Duration::from_millis(300), Duration::ZERO);
    let error = soon(client.wait_for(&challenge("/check"))).await;
    assert!(matches!(error, Err(ClientError::StillPending)));
    assert!(begun.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn without_retry_after_the_wait_grows_with_each_attempt() {
    let server = FakeServer::fixed(500, &[], "").await;
    let begun = Instant::now();
    let options = ClientOptions::default().attempts(3);
    let _ = oxp(&server.url(), options).call(&add()).await;
    let elapsed = begun.elapsed();
    // At least half of 250 ms plus half of 500 ms.
    assert!(elapsed >= Duration::from_millis(370), "{elapsed:?}");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    for status in [301, 302, 307, 308] {
        let server = FakeServer::start(move |_, request| {
            now(answer(status, &[("location", request.path.as_str())], ""))
        })
        .await;
        let client = oxp(&server.url(), once().api_key("key"));
        let error = client.call(&add()).await.unwrap_err();
        assert!(error.to_string().contains("redirects"), "{error}");
        assert!(client.tools().await.is_err());
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_response_that_is_too_large_is_not_read_to_its_end() {
    for has_length in [true, false] {
        let server = FakeServer::start(move |_, _| {
            const MEGABYTE: usize = 1 << 20;
            let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![b' '; MEGABYTE]));
            let body = Body::from_stream(stream::iter((0..100).map(move |_| chunk())));
            let length = (100 * MEGABYTE).to_string();
            let mut headers = JSON.to_vec();
            if has_length {
                headers.push(("content-length", length.as_str()));
            }
            now(answer(200, &headers, body))
        })
        .await;
        for options in [once(), once().max_response_size(2 << 20)] {
            let error = oxp(&server.url(), options).call(&add()).await.unwrap_err();
            assert!(
                matches!(error, ClientError::TooLarge { .. }),
                "{has_length}: {error}"
            );
        }
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_call_is_retried_after_a_broken_connection() {
    let server = FakeServer::start(move |number, _| {
        now(match number {
            // The connection ends before the body does.
            0 => {
                let broken = stream::iter([
                    Ok(Bytes::from_static(b"{")),
                    Err(std::io::Error::other("broken")),
                ]);
                answer(200, JSON, Body::from_stream(broken))
            }
            _ => answer(200, JSON, FIFTEEN),
        })
    })
    .await;
    assert_eq!(client(&server).call(&add()).await.unwrap().attempts, 2);
}

#[tokio::test]
async fn missing_requirements_are_read_from_both_places_that_servers_use() {
    let missing = r#"{"message": "Authorization required", "missing_requirements":
        {"authorization": [{"id": "google", "url": "https://a.example/x", "check_url": "/check"}],
         "user_id": true, "secrets": [{"id": "K"}]}}"#;
    let inside = format!(r#"{{"call_id": "c", "success": false, "error": {missing}}}"#);
    for (status, body) in [(400, missing.to_owned()), (200, inside)] {
        let server = FakeServer::fixed(status, JSON, body).await;
        let outcome = client(&server).call(&add()).await.unwrap().outcome;
        let CallOutcome::MissingRequirements(missing) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(missing.challenges[0].url, "https://a.example/x");
        assert!(missing.user_id && missing.secrets == ["K"]);
        assert_eq!(server.requests().len(), 1, "not retried: the user must act");
    }
}

fn challenge(check_url: &str) -> AuthorizationChallenge {
    serde_json::from_value(json!({"id": "c", "url": "https://a.example", "check_url": check_url}))
        .unwrap()
}

#[tokio::test]
async fn the_client_waits_for_the_decision_of_a_challenge() {
    for (last, decision) in [
        ("completed", ChallengeDecision::Completed),
        ("failed", ChallengeDecision::Failed),
    ] {
        let server = FakeServer::start(move |number, _| {
            now(match number {
                0 => answer(200, JSON, r#"{"status": "pending"}"#),
                1 => answer(503, &[("retry-after", "0")], ""),
                _ => answer(200, JSON, json!({"status": last}).to_string()),
            })
        })
        .await;
        let client = oxp(&server.url(), once().api_key("key"));
        let client = client.challenge_polling(Duration::from_secs(5), Duration::from_millis(10));
        // The same server, as an absolute or a relative URL: the credentials are sent.
        let check = format!("{}/check?id=1", server.url());
        assert_eq!(client.wait_for(&challenge(&check)).await.unwrap(), decision);
        assert_eq!(
            client.wait_for(&challenge("/check?id=1")).await.unwrap(),
            decision
        );
        let requests = server.requests();
        assert!(
            requests
                .iter()
                .all(|it| it.path == "/check?id=1" && it.headers["oxp-api-key"] == "key")
        );
    }
    let server = FakeServer::fixed(200, JSON, r#"{"status": "pending"}"#).await;
    let client = client(&server);
    let client = client.challenge_polling(Duration::from_millis(100), Duration::from_millis(30));
    assert!(matches!(
        soon(client.wait_for(&challenge("/c"))).await,
        Err(ClientError::StillPending)
    ));
    for wrong in ["", "ftp://x/", "file:///etc/passwd", "javascript:1"] {
        let error = client.wait_for(&challenge(wrong)).await;
        assert!(matches!(error, Err(ClientError::Setup(_))), "{wrong}");
    }
}

#[tokio::test]
async fn credentials_are_not_sent_to_another_server() {
    let other = FakeServer::fixed(200, JSON, r#"{"status": "completed"}"#).await;
    let server = FakeServer::fixed(200, JSON, "{}").await;
    let check = format!("{}/check", other.url());
    let client = oxp(&server.url(), once().api_key("key"));
    client.wait_for(&challenge(&check)).await.unwrap();
    let requests = other.requests();
    assert!(requests.len() == 1 && requests[0].headers.get("oxp-api-key").is_none());
}
