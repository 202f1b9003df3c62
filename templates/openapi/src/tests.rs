//! The events in `events/`, with a server in place of the API. Recorded events have its responses beside
//! them, in `NAME.responses.json`; `responses.json` has others, by method and path.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use lambda_tools::{
    from_openapi::ApiTools,
    secrets::Secrets,
    serde_json::{self, Map, Value},
    testing::replay,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/events");

#[tokio::test]
async fn events_have_the_expected_responses() {
    let api = ApiTools::from_json(include_str!("../tools.json")).unwrap();
    let secrets = api.secrets().into_iter();
    let secrets: Vec<_> = secrets
        .map(|id| (id.clone(), format!("VALUE_OF_{id}")))
        .collect();
    // Recorded requests have no secrets.
    let values = secrets.iter().map(|(_, value)| value.clone()).collect();
    let server = crate::server(Some(played_api(values))).unwrap();
    replay(FOLDER, server.secrets(Secrets::fixed(secrets))).await;
}

/// Returns the responses by method and path: bodies, or recorded statuses with their bodies.
fn responses() -> Map<String, Value> {
    let mut all: Map<_, _> = serde_json::from_str(include_str!("../responses.json")).unwrap();
    for entry in fs::read_dir(FOLDER).unwrap() {
        let file = entry.unwrap().path();
        if file.to_string_lossy().ends_with(".responses.json") {
            let recorded = fs::read_to_string(file).unwrap();
            all.extend(serde_json::from_str::<Map<_, _>>(&recorded).unwrap());
        }
    }
    all
}

/// Starts a server in place of the API, and returns its URL.
fn played_api(secrets: Vec<String>) -> String {
    let responses = responses();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &responses, &secrets);
        }
    });
    url
}

fn answer(mut stream: TcpStream, responses: &Map<String, Value>, secrets: &[String]) {
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
    let hide = |text: String, secret: &String| text.replace(secret, "[secret]");
    let request = secrets.iter().fold(request.to_owned(), hide);
    let response = responses.get(&request);
    let (status, kind, body) = match response {
        Some(it) if it.get("content_type").is_some() => {
            let kind = it["content_type"].as_str().unwrap_or_default();
            let text = it["body"].as_str().map(str::to_owned);
            let text = text.unwrap_or_else(|| it["body"].to_string());
            (it["status"].as_u64().unwrap(), kind, text)
        }
        Some(body) => (200, "application/json", body.to_string()),
        None => (404, "text/plain", "no response is recorded".to_owned()),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status} \r\ncontent-type: {kind}\r\ncontent-length: {length}");
    write!(stream, "{head}\r\nconnection: close\r\n\r\n{body}").unwrap();
}
