//! The compiled program as a local server; also over raw sockets: web pages, and clients that violate
//! the protocol.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use test_support::{call_at, free_address};

use crate::support::{Running, isolated, toolbox};

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
        let (status, body) = call_at(&url, &add(1, 2)).await;
        assert_eq!((status, &body["value"]), (200, &json!(3)));
        assert!(body["duration"].is_number());
        let line = running.line_with("tool=\"Calculator.Add\" version=\"1.0.0\"", 5);
        assert!(line.contains("ms=") && line.contains("success"), "{line}");
        call_at(&url, &json!({"tool_id": "Calculator.Add@7"})).await;
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
        let (status, body) = call_at(&url, &add(1, 2)).await;
        assert_eq!((status, &body["value"]), (200, &json!(3)));
    }
    server.signal("TERM");
    assert_eq!(server.ends_within(5), Some(0));
}

const CANNOT_ACCEPT: &str = "connections cannot be accepted";

fn connect(url: &str) -> TcpStream {
    let address = url.strip_prefix("http://").unwrap();
    let mut address: SocketAddr = address.parse().unwrap();
    address.set_ip([127, 0, 0, 1].into());
    let stream = TcpStream::connect(address).unwrap();
    let limit = Some(Duration::from_secs(5));
    stream.set_read_timeout(limit).unwrap();
    stream
}

/// Sends these bytes; returns everything that the server sends until it closes the connection.
fn exchange(url: &str, bytes: &[u8]) -> String {
    let mut stream = connect(url);
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns the status of the response to a request with this target and these headers.
fn status_of(url: &str, target: &str, headers: &[&str]) -> String {
    let headers = headers.join("\r\n");
    let head = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n\r\n");
    let answer = exchange(url, head.replace("\r\n\r\n\r\n", "\r\n\r\n").as_bytes());
    answer.split(' ').nth(1).unwrap_or(&answer).to_owned()
}

#[test]
fn http_2_is_not_supported() {
    let (_running, url) = Running::serving(&mut toolbox());
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    assert_eq!(exchange(&url, preface), "");
    assert_eq!(status_of(&url, "/health", &["Host: localhost"]), "200");
}

#[test]
fn web_pages_cannot_call_unless_they_are_allowed_and_no_request_hides_its_host() {
    let (_running, url) = Running::serving(toolbox().env("ALLOWED_HOSTS", "app.example"));
    let two_pages = ["Origin: http://localhost", "Origin: http://evil.example"];
    for (target, headers, status) in [
        ("/health", &["Host: [::1]:9000"][..], "200"),
        ("/health", &[], "200"),
        ("/health", &["Origin: http://localhost:3000"], "200"),
        ("/health", &["Origin: https://app.example"], "200"),
        ("/health", &["Origin: https://evil.example"], "403"),
        ("/health", &["Origin: null"], "403"),
        ("http://localhost/health", &["Host: localhost"], "200"),
        ("http://evil.example/health", &["Host: localhost"], "403"),
        ("http://evil.example/health", &[], "403"),
        ("http://localhost/health", &["Host: evil.example"], "403"),
        ("/health", &["Host: localhost", "Host: localhost"], "403"),
        ("/health", &["Host: localhost", "Host: evil.example"], "403"),
        ("/health", &two_pages, "403"),
        ("/health", &["Host: 192.0.2.7"], "403"),
    ] {
        let seen = status_of(&url, target, headers);
        assert_eq!(seen, status, "{target} {headers:?}");
    }
}

#[test]
fn on_other_addresses_host_names_have_to_be_allowed() {
    let everywhere = |allowed: &str| {
        let mut command = toolbox();
        command.env("HOST", "0.0.0.0").env("ALLOWED_HOSTS", allowed);
        command.env("TOOLS_AUTH", "none");
        command.env("TOOLS_PUBLIC_URL", "https://tools.example/prod");
        Running::serving(&mut command)
    };
    let (_running, url) = everywhere("app.example, other.example");
    for (headers, status) in [
        (&[][..], "200"),
        (&["Host: localhost:9000"], "200"),
        (&["Host: 192.0.2.7:9000"], "200"),
        (&["Host: [2001:db8::1]:9000"], "200"),
        (&["Host: App.Example:9000"], "200"),
        (&["Host: tools.example"], "200"),
        (&["Host: tools.example.evil.example"], "403"),
        (
            &["Host: 192.0.2.7:90", "Origin: http://192.0.2.7:30"],
            "200",
        ),
        (&["Host: 192.0.2.7", "Origin: https://other.example"], "200"),
        (&["Host: 192.0.2.7", "Origin: http://192.0.2.8"], "403"),
        (&["Host: 192.0.2.7", "Origin: http://evil.example"], "403"),
        (&["Host: 192.0.2.7", "Origin: null"], "403"),
        (&["Origin: http://192.0.2.7"], "403"),
    ] {
        assert_eq!(status_of(&url, "/health", headers), status, "{headers:?}");
    }
    let head = b"GET /health HTTP/1.1\r\nConnection: close\r\nHost: agents.example:80\r\n\r\n";
    let answer = exchange(&url, head);
    assert!(
        answer.contains("add agents.example to ALLOWED_HOSTS"),
        "{answer}"
    );

    let (_running, url) = everywhere("*");
    // Any page may send, but none that is not named may read.
    let head = b"GET /tools HTTP/1.1\r\nConnection: close\r\nHost: a\r\nOrigin: https://evil.example\r\n\r\n";
    let answer = exchange(&url, head);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.contains("access-control-"), "{answer}");
    let headers = ["Host: evil.example", "Origin: null"];
    assert_eq!(status_of(&url, "/health", &headers), "200");
}

#[cfg(unix)]
#[test]
fn without_file_descriptors_the_server_warns_and_recovers() {
    let mut command = isolated(Command::new("sh"));
    let toolbox = env!("CARGO_BIN_EXE_toolbox");
    command.args(["-c", "ulimit -n 40; exec \"$0\"", toolbox]);
    let (running, url) = Running::serving(&mut command);
    let connections: Vec<_> = (0..60).map(|_| connect(&url)).collect();
    let line = running.line_with(CANNOT_ACCEPT, 5);
    assert!(line.contains("WARN"), "{line}");
    std::thread::sleep(Duration::from_millis(2_500));
    let lines = running.lines();
    let warnings = lines.iter().filter(|line| line.contains(CANNOT_ACCEPT));
    assert!((1..=3).contains(&warnings.count()), "{lines:?}");
    drop(connections);
    assert_eq!(status_of(&url, "/health", &["Host: localhost"]), "200");
}
