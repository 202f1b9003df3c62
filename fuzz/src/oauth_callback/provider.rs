//! The token endpoint of a provider on this machine, which counts the codes that are exchanged.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

/// The number of requests to the provider's token endpoint.
pub(super) static EXCHANGES: AtomicUsize = AtomicUsize::new(0);

/// Starts the endpoint, which accepts every code; returns its address.
pub(super) fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    format!("http://{address}/token")
}

/// Answers the requests of one connection, each of which arrives as a whole or in two parts.
fn answer(mut stream: TcpStream) {
    let mut arrived = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        arrived.extend_from_slice(&buffer[..count]);
        let Some(length) = length_of(&arrived) else {
            continue;
        };
        if arrived.len() < length {
            continue;
        }
        arrived.clear();
        EXCHANGES.fetch_add(1, Relaxed);
        let body =
            r#"{"access_token":"token-of-the-user","token_type":"bearer","expires_in":3600}"#;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        let response = format!("{head} {}\r\n\r\n{body}", body.len());
        if stream.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Returns the length of the request that has begun to arrive, once its head is complete.
fn length_of(arrived: &[u8]) -> Option<usize> {
    let head = memchr::memmem::find(arrived, b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&arrived[..head]).to_ascii_lowercase();
    let (_, rest) = text.split_once("content-length:")?;
    let length: usize = rest.lines().next()?.trim().parse().ok()?;
    Some(head + 4 + length)
}
