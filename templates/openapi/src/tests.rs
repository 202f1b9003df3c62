//! The events in `events/`, with a server in place of the API: `responses.json` has its responses,
//! by method and path.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use lambda_tools::{from_openapi::ApiTools, secrets::Secrets, serde_json::Value, testing::replay};

const RESPONSES: &str = include_str!("../responses.json");

#[tokio::test]
async fn events_have_the_expected_responses() {
    let api = ApiTools::from_json(include_str!("../tools.json")).unwrap();
    let secrets = api
        .secrets()
        .into_iter()
        .map(|id| (id.clone(), format!("VALUE_OF_{id}")));
    let server = crate::server(Some(played_api())).unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/events");
    replay(folder, server.secrets(Secrets::fixed(secrets))).await;
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
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).unwrap();
    }
    let length = head
        .lines()
        .find_map(|it| it.strip_prefix("content-length: ")?.parse().ok());
    let _ = reader
        .take(length.unwrap_or(0))
        .read_to_end(&mut Vec::new());
    let request = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1");
    let responses: Value = lambda_tools::serde_json::from_str(RESPONSES).unwrap();
    let (status, body) = match responses.get(request) {
        Some(body) => ("200 OK", body.to_string()),
        None => (
            "404 Not Found",
            r#"{"message": "no response is recorded"}"#.to_owned(),
        ),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}");
    write!(stream, "{head}\r\nconnection: close\r\n\r\n{body}").unwrap();
}
