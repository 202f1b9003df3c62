//! The function in a container, as the platforms run it that run one.
//!
//! It is the last stage of the `Dockerfile`: the binary in a root file system that has nothing else,
//! with the image's variables and user, as process 1. With `TEST_CONTAINER_IMAGE`, podman runs an
//! image instead (`tests/image`).

mod image;

use std::{io::ErrorKind, net::TcpStream, sync::Arc, time::Duration};

use axum::{Router, routing::get};
use serde_json::{Value, json};
use test_support::Served;
use tokio::{sync::Notify, time::timeout};

use image::{Image, Stage};

const OPEN: (&str, &str) = ("TOOLS_AUTH", "none");

/// Calls a tool in OXP; returns the body of the response.
async fn call(url: &str, call: &Value) -> reqwest::Result<Value> {
    let request = reqwest::Client::new().post(format!("{url}/tools/call"));
    request.body(call.to_string()).send().await?.json().await
}

#[tokio::test]
#[ignore = "needs the deployable function; run tests/all"]
async fn the_server_writes_nothing_and_logs_json() {
    let image = Image::for_test("read-only");
    let mut recording = image.command(&[OPEN, ("PORT", "0"), ("RECORD_EVENTS", "/events")]);
    let output = recording.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("Read-only file system"),
        "root, or everyone, must be able to create user namespaces: {text}"
    );

    let container = image.start(&[OPEN, ("TOOLS_METRICS", "cloudwatch")]);
    let add = json!({"tool_id": "Calculator.Add@1.0.0", "input": {"a": 1, "b": 2}});
    let answer = call(&container.url, &add).await.unwrap();
    assert_eq!(answer["value"], 3, "{answer}");
    container.terminate();
    let (code, lines) = container.end_within(10);
    assert_eq!(code, Some(0));
    let lines: Vec<Value> = lines
        .iter()
        .map(|it| serde_json::from_str(it).unwrap_or_else(|error| panic!("{error}: {it}")))
        .collect();
    assert!(lines.iter().any(|it| it["_aws"].is_object()), "{lines:?}");
    let messages: Vec<_> = lines
        .iter()
        .filter_map(|it| it["message"].as_str())
        .collect();
    assert!(messages.contains(&"call"), "{messages:?}");
    assert_eq!(messages.last(), Some(&"Stopped."));
}

/// An API whose response to a tool comes when the test says so.
struct SlowApi {
    served: Served,
    called: Arc<Notify>,
    may_answer: Arc<Notify>,
}

impl SlowApi {
    async fn start() -> Self {
        let (called, may_answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let both = (Arc::clone(&called), Arc::clone(&may_answer));
        let answer = async move || {
            both.0.notify_one();
            both.1.notified().await;
            json!({"resultSizeEstimate": 0}).to_string()
        };
        let router = Router::new().route("/gmail/v1/users/me/messages", get(answer));
        Self {
            served: Served::start(router).await,
            called,
            may_answer,
        }
    }
}

/// Waits until the server refuses connections.
async fn refuses_connections(url: &str) {
    let address = url.strip_prefix("http://").unwrap();
    for _ in 0..200 {
        let connected = TcpStream::connect(address);
        if connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the server still accepts connections");
}

/// For as long as it may take, which is longer than without the setting, or until its limit.
#[tokio::test]
#[ignore = "needs the deployable function; run tests/all"]
async fn sigterm_lets_running_calls_end_and_accepts_no_others() {
    for (seconds, is_completed) in [("20", true), ("1", false)] {
        let image = Image::for_test("sigterm");
        let api = SlowApi::start().await;
        let settings = [
            OPEN,
            ("GMAIL_URL", &*api.served.url),
            ("SHUTDOWN_SECONDS", seconds),
        ];
        let container = image.start(&settings);
        let url = container.url.clone();
        let context = json!({"user_id": "u", "authorization": [{"id": "google", "token": "t"}]});
        let body = json!({"tool_id": "Gmail.GetEmails", "context": context});
        let answer = tokio::spawn(async move { call(&url, &body).await });
        let called = timeout(Duration::from_secs(10), api.called.notified()).await;
        called.expect("the tool calls the API");
        container.terminate();
        refuses_connections(&container.url).await;
        if is_completed {
            tokio::time::sleep(Duration::from_secs(6)).await;
            assert!(!answer.is_finished());
            api.may_answer.notify_one();
            let answer = answer.await.unwrap().unwrap();
            assert_eq!(answer["value"], json!({"emails": []}), "{answer}");
            assert_eq!(container.end_within(3).0, Some(0));
        } else {
            let (code, lines) = container.end_within(4);
            assert_eq!(code, Some(0));
            let cut = "stopped while calls were still running";
            assert!(lines.concat().contains(cut), "{lines:?}");
            assert!(answer.await.unwrap().is_err());
        }
    }
}

#[test]
#[ignore = "needs the deployable function; run tests/all"]
fn generated_projects_have_the_same_image() {
    let own = Stage::read("Dockerfile").without_licenses();
    for template in ["function", "openapi"] {
        assert_eq!(
            Stage::read(&format!("templates/{template}/Dockerfile")),
            own
        );
    }
}
