//! The events in `events/`, with a server in place of the API: `responses.json` has its responses,
//! by method and path.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use lambda_tools::{secrets::Secrets, serde_json::Value, testing::replay};

const RESPONSES: &str = include_str!("../responses.json");

/// The tool's secret. Recorded events have such a text in place of the value.
const SECRET: (&str, &str) = ("GITHUB_TOKEN", "VALUE_OF_GITHUB_TOKEN");

#[tokio::test]
async fn events_have_the_expected_responses() {
    let server = crate::server(&played_api()).unwrap();
    replay("events", server.secrets(Secrets::fixed([SECRET]))).await;
}

/// Starts a server in place of the API, and returns its URL.
fn played_api() -> String {
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
    let request = head[0].split([' ', '?']).take(2).collect::<Vec<_>>();
    let responses: Value = lambda_tools::serde_json::from_str(RESPONSES).unwrap();
    let response = responses.get(request.join(" "));
    // An API that gets the secret in another form, such as Basic's base64, or gets none: `true`.
    let has_secret = head.iter().any(|line| line.contains(SECRET.1));
    let (status, body) = match response {
        Some(body) if has_secret => ("200 OK", body.to_string()),
        Some(_) => (
            "401 Unauthorized",
            r#"{"message": "the secret is missing: see has_secret in src/tests.rs"}"#.to_owned(),
        ),
        None => ("404 Not Found", "{}".to_owned()),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close");
    write!(stream, "{head}\r\n\r\n{body}").unwrap();
}
