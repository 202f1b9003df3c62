//! The compiled program as a local server.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::free_address;

use crate::support::{Running, toolbox};

async fn post(url: &str, body: &Value) -> (u16, Value) {
    let client = reqwest::Client::new();
    let sent = client
        .post(format!("{url}/tools/call"))
        .body(body.to_string())
        .send();
    let response = sent.await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn add(a: i32, b: i32) -> Value {
    json!({"tool_id": "Calculator.Add@1.0.0", "input": {"a": a, "b": b}})
}

#[tokio::test]
async fn it_serves_prints_a_line_per_call_and_stops_cleanly() {
    for signal in ["INT", "TERM"] {
        let mut command = toolbox();
        command.env("TOOLS_BASE_PATH", "/v1/agents/");
        let (mut running, url) = Running::serving(&mut command);
        let url = format!("{url}/v1/agents");
        let (status, body) = post(&url, &add(1, 2)).await;
        assert_eq!((status, &body["value"]), (200, &json!(3)));
        assert!(body["duration"].is_number());
        let line = running.line_with("tool=\"Calculator.Add\" version=\"1.0.0\"", 5);
        assert!(line.contains("ms=") && line.contains("success"), "{line}");
        post(&url, &json!({"tool_id": "Calculator.Add@7"})).await;
        let line = running.line_with("version=\"7.0.0\"", 5);
        assert!(
            line.contains("ms=") && line.contains("unknown_version"),
            "{line}"
        );
        running.signal(signal);
        assert_eq!(running.ends_within(5), Some(0), "after SIG{signal}");
    }
}

#[test]
#[ignore = "needs curl; run tests/all"]
fn the_printed_curl_line_works() {
    let running = Running::start(toolbox().env("PORT", "0"));
    let line = running.line_with("curl", 20);
    let output = std::process::Command::new("sh")
        .args(["-c", &line])
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["success"], true, "{line}: {answer}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_whose_output_nobody_reads_continues() {
    let port = free_address().port();
    let mut command = toolbox();
    command
        .env("PORT", port.to_string())
        .env("TOOLS_METRICS", "cloudwatch")
        .env("TOOLS_ATUH", "a setting to warn about");
    let mut server = Running::unread(&mut command);
    let url = format!("http://127.0.0.1:{port}");
    for _ in 0..500 {
        if reqwest::get(format!("{url}/health")).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for _ in 0..2 {
        let (status, body) = post(&url, &add(1, 2)).await;
        assert_eq!((status, &body["value"]), (200, &json!(3)));
    }
    server.signal("TERM");
    assert_eq!(server.ends_within(5), Some(0));
}
