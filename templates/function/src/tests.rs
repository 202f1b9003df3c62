//! The events in `events/`, with a server that plays GitHub.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use lambda_tools::{secrets::Secrets, testing::replay};

/// A part of GitHub's answer.
const FOUND: &str = r#"{"total_count": 1, "items": [
    {"id": 1, "title": "It panics", "html_url": "https://github.com/o/r/issues/1"}
]}"#;

#[tokio::test]
async fn events_have_the_expected_responses() {
    let server = crate::server(&played_github()).unwrap();
    let secrets = Secrets::fixed([("GITHUB_TOKEN", "a-token")]);
    replay("events", server.secrets(secrets)).await;
}

/// Starts a server that finds one issue, and returns its URL.
fn played_github() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap());
        }
    });
    url
}

fn answer(mut stream: TcpStream) {
    let lines = BufReader::new(&stream).lines().map(Result::unwrap);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let is_allowed = head.contains(&"authorization: Bearer a-token".to_owned());
    let (status, body) = if is_allowed {
        ("200 OK", FOUND)
    } else {
        ("401 Unauthorized", r#"{"message": "Bad credentials"}"#)
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close");
    write!(stream, "{head}\r\n\r\n{body}").unwrap();
}
