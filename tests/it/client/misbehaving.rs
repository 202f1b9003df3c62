//! The OXP client against servers of every dialect, and of no manners.

use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use futures_util::stream;
use lambda_tools::client::{
    ClientError,
    oxp::{
        AuthorizationChallenge, CallFormat, CallOutcome, CallRequest, ChallengeDecision, OxpClient,
    },
};
use serde_json::{Value, json};

use super::{JSON, Played, answer, now};

const FIFTEEN: &str = r#"{"call_id": "c", "success": true, "duration": 1.5, "value": 15}"#;

fn client(played: &Played) -> OxpClient {
    OxpClient::new(&played.url()).unwrap()
}

fn add() -> CallRequest {
    CallRequest::new("Calculator.Add").input(json!({"a": 10, "b": 5}))
}

fn call_ids(played: &Played) -> Vec<String> {
    let id = |body: &[u8]| {
        let body: Value = serde_json::from_slice(body).unwrap();
        let request = body.get("request").unwrap_or(&body);
        request["call_id"].as_str().unwrap().to_owned()
    };
    played.asked().iter().map(|asked| id(&asked.body)).collect()
}

#[tokio::test]
async fn calls_are_written_and_answers_read_in_each_dialect() {
    let envelope = |schema: &str| format!(r#"{{"$schema": "{schema}", "result": {FIFTEEN}}}"#);
    for (dialect, schema) in [
        (CallFormat::Header, None),
        (CallFormat::Schema, Some("urn:oxp:1.0")),
        (CallFormat::Otc, Some("otc://1.0")),
    ] {
        let body = schema.map_or(FIFTEEN.to_owned(), envelope);
        let played = Played::start(move |_, _| now(answer(200, JSON, body.clone()))).await;
        let call = add().user_id("u").token("google", "t").secret("K", "v");
        let reply = client(&played).dialect(dialect).call(&call).await.unwrap();
        assert_eq!(reply.outcome.value(), Some(json!(15)), "{dialect:?}");
        assert_eq!(reply.duration, Some(Duration::from_micros(1500)));
        let asked = &played.asked()[0];
        assert_eq!(
            (asked.method.as_str(), asked.path.as_str()),
            ("POST", "/tools/call")
        );
        let mut body: Value = serde_json::from_slice(&asked.body).unwrap();
        assert_eq!(body.get("$schema").and_then(Value::as_str), schema);
        let version = asked
            .headers
            .get("oxp-version")
            .map(|it| it.to_str().unwrap());
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
async fn lists_are_read_in_each_form() {
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
        let text = list.to_string();
        let played = Played::start(move |_, _| now(answer(200, JSON, text.clone()))).await;
        let tools = client(&played).tools().await.unwrap();
        assert_eq!(tools[0].input_schema, bare, "{list}");
        assert_eq!(tools[0].requirements.secrets[0].id, "K");
    }
}

#[tokio::test]
async fn a_server_that_is_down_twice_is_asked_three_times_with_one_id() {
    for status in [503, 500, 429, 408] {
        let played = Played::start(move |number, _| {
            now(match number {
                0 | 1 => answer(status, &[("retry-after", "0")], "busy"),
                _ => answer(200, JSON, FIFTEEN),
            })
        })
        .await;
        let reply = client(&played).call(&add()).await.unwrap();
        assert_eq!(
            (reply.attempts, reply.outcome.value()),
            (3, Some(json!(15)))
        );
        let ids = call_ids(&played);
        assert!(
            ids.len() == 3 && ids[0] == ids[1] && ids[1] == ids[2],
            "{ids:?}"
        );
    }
}

#[tokio::test]
async fn the_server_says_whether_to_ask_again() {
    let temporary = r#"{"message": "not now"}"#;
    let yes = &[
        ("content-type", "application/json"),
        ("x-should-retry", "true"),
        ("retry-after", "0"),
    ];
    let played = Played::start(move |number, _| {
        now(match number {
            0 => answer(400, yes, temporary),
            _ => answer(200, JSON, FIFTEEN),
        })
    })
    .await;
    assert_eq!(client(&played).call(&add()).await.unwrap().attempts, 2);
    for (status, headers) in [
        (503, &[("x-should-retry", "false")][..]),
        (409, &[]),
        (400, JSON),
    ] {
        let played =
            Played::start(move |_, _| now(answer(status, headers, r#"{"message": "no"}"#))).await;
        let _ = client(&played).call(&add()).await;
        assert_eq!(played.asked().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn there_is_an_end_to_asking() {
    let played = Played::saying(503, &[("retry-after", "0")], "busy").await;
    let error = client(&played).attempts(3).call(&add()).await.unwrap_err();
    assert!(
        matches!(error, ClientError::Status { status: 503, .. }),
        "{error}"
    );
    assert_eq!(played.asked().len(), 3);
    // A wait that would end after the deadline is not begun.
    let played = Played::saying(429, &[("retry-after", "3600")], "busy").await;
    let begun = Instant::now();
    let error = client(&played).call(&add()).await.unwrap_err();
    assert!(
        matches!(error, ClientError::Status { status: 429, .. }),
        "{error}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_slow_server_is_given_up() {
    let played = Played::start(|_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            answer(200, JSON, FIFTEEN)
        })
    })
    .await;
    let begun = Instant::now();
    let client = client(&played)
        .timeout(Duration::from_millis(200))
        .deadline(Duration::from_secs(2));
    let error = client.call(&add()).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::Unreachable(text) if text.contains("in time")),
        "{error}"
    );
    assert!(begun.elapsed() < Duration::from_secs(4));
    let ids = call_ids(&played);
    assert!(ids.len() > 1 && ids.iter().all(|id| *id == ids[0]));
}

#[tokio::test]
async fn what_is_no_answer_is_an_error_and_no_panic() {
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
        let played = Played::start(move |_, _| now(answer(status, headers, body))).await;
        let error = client(&played).call(&add()).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Unreadable(_)),
            "{body}: {error:?}"
        );
        let error = client(&played).tools().await.unwrap_err();
        assert!(
            matches!(
                error,
                ClientError::Unreadable(_) | ClientError::Status { .. }
            ),
            "{body}: {error:?}"
        );
    }
}

/// What stands in between answers in words of its own.
#[tokio::test]
async fn a_status_without_its_body_is_told_as_one() {
    let html = &[("content-type", "text/html")][..];
    for (status, headers, body) in [
        (400, html, "<html>"),
        (400, JSON, ""),
        (400, JSON, r#"{"message": null}"#),
        (422, JSON, r#"{"message": 5}"#),
    ] {
        let played = Played::start(move |_, _| now(answer(status, headers, body))).await;
        let error = client(&played).call(&add()).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Status { status: it, .. } if it == status),
            "{body}: {error:?}"
        );
    }
    let long = format!(r#"{{"message": "{}"}}"#, "é".repeat(10_000));
    let played = Played::start(move |_, _| now(answer(404, JSON, long.clone()))).await;
    let error = client(&played).call(&add()).await.unwrap_err();
    assert!(error.to_string().len() < 600);
}

#[tokio::test]
async fn one_attempt_ends_with_the_time_for_all() {
    let played = Played::start(|_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            answer(200, JSON, FIFTEEN)
        })
    })
    .await;
    let begun = Instant::now();
    let client = client(&played).deadline(Duration::from_millis(300));
    assert!(client.call(&add()).await.is_err());
    assert!(begun.elapsed() < Duration::from_secs(3));
    let client = client.wait_at_most(Duration::from_millis(300), Duration::ZERO);
    let error = client.wait_for(&challenge("/check")).await;
    assert!(matches!(error, Err(ClientError::StillPending)));
    assert!(begun.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn without_a_word_from_the_server_it_waits_longer_each_time() {
    let played = Played::saying(500, &[], "").await;
    let begun = Instant::now();
    let _ = client(&played).attempts(3).call(&add()).await;
    let waited = begun.elapsed();
    // Half of 250 and of 500 ms at least.
    assert!(waited >= Duration::from_millis(370), "{waited:?}");
    assert_eq!(played.asked().len(), 3);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    for status in [301, 302, 307, 308] {
        let played = Played::start(move |_, asked| {
            now(answer(status, &[("location", asked.path.as_str())], ""))
        })
        .await;
        let client = client(&played).api_key("key");
        let error = client.call(&add()).await.unwrap_err();
        assert!(error.to_string().contains("redirects"), "{error}");
        assert!(client.tools().await.is_err());
        assert_eq!(played.asked().len(), 2);
    }
}

#[tokio::test]
async fn a_huge_body_is_not_read_to_its_end() {
    // Once with its length said, once without.
    for said in [true, false] {
        let played = Played::start(move |_, _| {
            const MEGABYTE: usize = 1 << 20;
            let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![b' '; MEGABYTE]));
            let body = Body::from_stream(stream::iter((0..100).map(move |_| chunk())));
            let length = (100 * MEGABYTE).to_string();
            let mut headers = JSON.to_vec();
            if said {
                headers.push(("content-length", length.as_str()));
            }
            now(answer(200, &headers, body))
        })
        .await;
        let limited = client(&played).largest_answer(2 << 20);
        for client in [client(&played), limited] {
            let error = client.call(&add()).await.unwrap_err();
            assert!(
                matches!(error, ClientError::TooLarge { .. }),
                "{said}: {error}"
            );
        }
        assert_eq!(played.asked().len(), 2);
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_tried_again() {
    let played = Played::start(move |number, _| {
        now(match number {
            // More is announced than comes.
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
    assert_eq!(client(&played).call(&add()).await.unwrap().attempts, 2);
}

#[tokio::test]
async fn requirements_are_understood_where_servers_report_them() {
    let missing = r#"{"message": "Authorization required", "missing_requirements":
        {"authorization": [{"id": "google", "url": "https://a.example/x", "check_url": "/check"}],
         "user_id": true, "secrets": [{"id": "K"}]}}"#;
    let inside = format!(r#"{{"call_id": "c", "success": false, "error": {missing}}}"#);
    for (status, body) in [(400, missing.to_owned()), (200, inside)] {
        let played = Played::start(move |_, _| now(answer(status, JSON, body.clone()))).await;
        let outcome = client(&played).call(&add()).await.unwrap().outcome;
        let CallOutcome::MissingRequirements(missing) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(missing.challenges[0].url, "https://a.example/x");
        assert!(missing.user_id && missing.secrets == ["K"]);
        assert_eq!(played.asked().len(), 1, "the user has to act first");
    }
}

fn challenge(check_url: &str) -> AuthorizationChallenge {
    serde_json::from_value(json!({"id": "c", "url": "https://a.example", "check_url": check_url}))
        .unwrap()
}

#[tokio::test]
async fn a_challenge_is_waited_for() {
    for (last, decision) in [
        ("completed", ChallengeDecision::Completed),
        ("failed", ChallengeDecision::Failed),
    ] {
        let played = Played::start(move |number, _| {
            now(match number {
                0 => answer(200, JSON, r#"{"status": "pending"}"#),
                1 => answer(503, &[("retry-after", "0")], ""),
                _ => answer(200, JSON, json!({"status": last}).to_string()),
            })
        })
        .await;
        let client = client(&played).api_key("key");
        let client = client.wait_at_most(Duration::from_secs(5), Duration::from_millis(10));
        // On the same server, absolute or not; the credentials go along.
        let check = format!("{}/check?id=1", played.url());
        assert_eq!(client.wait_for(&challenge(&check)).await.unwrap(), decision);
        assert_eq!(
            client.wait_for(&challenge("/check?id=1")).await.unwrap(),
            decision
        );
        let asked = played.asked();
        assert!(
            asked
                .iter()
                .all(|it| it.path == "/check?id=1" && it.headers["oxp-api-key"] == "key")
        );
    }
    let played = Played::saying(200, JSON, r#"{"status": "pending"}"#).await;
    let client = client(&played);
    let client = client.wait_at_most(Duration::from_millis(100), Duration::from_millis(30));
    assert!(matches!(
        client.wait_for(&challenge("/c")).await,
        Err(ClientError::StillPending)
    ));
    for wrong in ["", "ftp://x/", "file:///etc/passwd", "javascript:1"] {
        let error = client.wait_for(&challenge(wrong)).await;
        assert!(matches!(error, Err(ClientError::Setup(_))), "{wrong}");
    }
}

#[tokio::test]
async fn credentials_go_to_no_other_server() {
    let other = Played::saying(200, JSON, r#"{"status": "completed"}"#).await;
    let played = Played::saying(200, JSON, "{}").await;
    let check = format!("{}/check", other.url());
    let client = client(&played).api_key("key");
    client.wait_for(&challenge(&check)).await.unwrap();
    let asked = other.asked();
    assert!(asked.len() == 1 && asked[0].headers.get("oxp-api-key").is_none());
}
