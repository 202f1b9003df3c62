//! The contracts, each of which is a program (`super::check`).

mod agentcore_runtime;
mod shutdown;

use std::{
    net::TcpStream,
    time::{Duration, Instant},
};

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use test_support::assert_program;

use super::image::Container;

/// Where the image listens, unless `PORT` says otherwise.
const URL: &str = "http://127.0.0.1:8000";

const OPEN: (&str, &str) = ("TOOLS_AUTH", "none");

fn request(method: Method, url: &str) -> RequestBuilder {
    Client::new().request(method, url)
}

/// Returns the status of the response to a health check of this host.
async fn health(url: &str, host: &str) -> StatusCode {
    let request = request(Method::GET, &format!("{url}/health")).header("host", host);
    request.send().await.unwrap().status()
}

fn add(a: i32, b: i32) -> Value {
    json!({"tool_id": "Calculator.Add@1.0.0", "input": {"a": a, "b": b}})
}

/// Calls a tool in OXP; returns its value.
async fn value_of(url: &str, call: &Value) -> Value {
    let request = request(Method::POST, &format!("{url}/tools/call"));
    let response = request.body(call.to_string()).send().await.unwrap();
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["success"], true, "{body}");
    body["value"].clone()
}

fn error_of(settings: &[(&str, &str)]) -> String {
    let output = Container::command(settings).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    text
}

mod undecided {
    use super::*;

    #[test]
    #[ignore = "a program that tests start"]
    fn program_of_tests() {
        assert_program();
        for unset in [&[][..], &[("TOOLS_AUTH", "")]] {
            let text = error_of(unset);
            let place = "may call this server, which others can reach at 0.0.0.0:8000";
            assert!(text.contains(place), "{text}");
            assert!(text.contains("TOOLS_AUTH=none lets anyone call"), "{text}");
        }
        for setting in [OPEN, ("HOST", "127.0.0.1")] {
            assert_eq!(Container::start(&[setting]).stop().0, Some(0));
        }
    }
}

mod read_only {
    use super::*;

    #[tokio::test]
    #[ignore = "a program that tests start"]
    async fn program_of_tests() {
        assert_program();
        let text = error_of(&[OPEN, ("RECORD_EVENTS", "/events")]);
        assert!(text.contains("Read-only file system"), "{text}");

        let settings = [
            OPEN,
            ("TOOLS_METRICS", "cloudwatch"),
            ("TOOLS_ATUH", "api-key"),
        ];
        let container = Container::start(&settings);
        assert_eq!(value_of(URL, &add(1, 2)).await, 3);
        let unknown = request(Method::POST, &format!("{URL}/tools/call"));
        let unknown = unknown.body(json!({"tool_id": "No.Tool@1.0.0"}).to_string());
        assert_eq!(unknown.send().await.unwrap().status(), 400);
        let (code, lines) = container.stop();
        assert_eq!(code, Some(0));
        let lines: Vec<Value> = lines
            .iter()
            .map(|it| serde_json::from_str(it).unwrap_or_else(|error| panic!("{error}: {it}")))
            .collect();
        let (metrics, events): (Vec<_>, Vec<_>) =
            lines.iter().partition(|it| !it["_aws"].is_null());
        assert_eq!(metrics.len(), 2, "{lines:?}");
        for event in &events {
            let has_time = humantime::parse_rfc3339(event["timestamp"].as_str().unwrap()).is_ok();
            assert!(has_time && event["level"].is_string(), "{event}");
        }
        let messages: Vec<_> = events
            .iter()
            .map(|it| it["message"].as_str().unwrap())
            .collect();
        assert!(
            messages.contains(&"Serving tools on http://0.0.0.0:8000"),
            "{messages:?}"
        );
        assert!(messages.contains(&"TOOLS_ATUH is not a setting; did you mean TOOLS_AUTH?"));
        assert_eq!(messages.iter().filter(|it| **it == "call").count(), 2);
        assert_eq!(messages.last(), Some(&"Stopped."));
        let call = events.iter().find(|it| it["outcome"] == "success").unwrap();
        assert!(
            call["tool"] == "Calculator.Add" && call["call_id"].is_string(),
            "{call}"
        );
    }
}

/// Cloud Run, "Container runtime contract": listens on 0.0.0.0 at `PORT`, and ends within ten seconds
/// of SIGTERM.
mod cloud_run {
    use super::*;

    #[tokio::test]
    #[ignore = "a program that tests start"]
    async fn program_of_tests() {
        const HOST: &str = "tools-1234.europe-west1.run.app";
        assert_program();
        let public_url = format!("https://{HOST}");
        let settings = [OPEN, ("PORT", "8080"), ("TOOLS_PUBLIC_URL", &public_url)];
        let container = Container::start(&settings);
        // An address that only a server on all addresses listens at.
        let url = "http://127.0.0.2:8080";
        assert_eq!(health(url, HOST).await, 200);
        assert_eq!(health(url, "other.example").await, 403);
        assert!(TcpStream::connect("127.0.0.1:8000").is_err());
        assert_eq!(value_of(url, &add(1, 2)).await, 3);
        let began = Instant::now();
        assert_eq!(container.stop().0, Some(0));
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}
