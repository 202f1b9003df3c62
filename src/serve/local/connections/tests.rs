//! Clients that are slow, idle or still connected at shutdown, on real sockets.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::Instant,
};

use axum::routing::get;
use serde_json::Value;
use tokio::{sync::oneshot, task::JoinHandle};

use super::*;
use crate::{Server, Toolkit, assemble::assemble, clock::REAL};

const SHORT: ConnectionLimits = ConnectionLimits {
    head: Duration::from_millis(600),
    body: Duration::from_millis(600),
    write: Duration::from_millis(600),
};

const HEALTH: &str = "GET /health HTTP/1.1\r\n\r\n";

/// A server with a route that takes twice as long as a request may take to arrive.
struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Running {
    async fn start(limits: ConnectionLimits) -> Self {
        let slow = async || tokio::time::sleep(SHORT.head * 2).await;
        // Not `into_router`, which depends on the environment of the tests.
        let (router, _) = assemble(Server::new(Toolkit::new([]).unwrap()), REAL, REAL);
        let router = router.route("/slow", get(slow));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap() };
        let server = tokio::spawn(serve(listener, router, limits, stopped));
        Self {
            address,
            stop,
            server,
        }
    }
}

/// Sends `first` at once and then `rest` again and again. Returns the time until the server closes
/// the connection, and everything that it sent.
fn run_client(address: SocketAddr, first: &str, rest: &str) -> (Duration, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let started = Instant::now();
    stream.write_all(first.as_bytes()).unwrap();
    let interval = Some(Duration::from_millis(20));
    stream.set_read_timeout(interval).unwrap();
    let (mut response, mut buffer) = (Vec::new(), [0; 4_096]);
    loop {
        assert!(started.elapsed() < Duration::from_secs(5), "{first:?}");
        // Fails once the connection is closed, which the read detects too.
        let _ = stream.write_all(rest.as_bytes());
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => response.extend_from_slice(&buffer[..length]),
            Err(error) if is_timeout(&error) => {}
            Err(_) => break,
        }
    }
    (started.elapsed(), String::from_utf8(response).unwrap())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// As when the credentials are missing: HTTP clients send a request's body after its head, and use
/// the connection again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_response_without_reading_the_body_does_not_close_the_connection() {
    let running = Running::start(SHORT).await;
    let mut stream = TcpStream::connect(running.address).unwrap();
    let body = "x".repeat(10_000);
    let head = format!(
        "POST /nowhere HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    for part in [head.as_str(), body.as_str()] {
        stream.write_all(part.as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    let close = "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n";
    stream.write_all(close.as_bytes()).unwrap();
    let mut responses = String::new();
    stream.read_to_string(&mut responses).unwrap();
    let statuses = responses.split("HTTP/1.1 ").skip(1);
    let statuses: Vec<_> = statuses.map(|response| &response[..3]).collect();
    assert_eq!(statuses, ["404", "200"], "{responses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn slow_and_idle_clients_are_disconnected_while_others_are_served() {
    let running = Running::start(SHORT).await;
    let address = running.address;
    let post = "POST /tools/call HTTP/1.1\r\n";
    let length = format!("{post}Content-Length: 1000\r\n\r\n{{");
    let chunked = format!("{post}Transfer-Encoding: chunked\r\n\r\n");
    let clients = [
        ("", "", ""),
        ("GET /health HTTP/1.1\r\nX-Slow: ", "x", ""),
        ("", "\r\n", ""),
        (HEALTH, "", "200"),
        (&length, "", "408"),
        (&length, " ", "408"),
        (&chunked, "1\r\n \r\n", "408"),
    ];
    thread::scope(|scope| {
        let clients = clients.map(|(first, rest, status)| {
            let client = scope.spawn(move || run_client(address, first, rest));
            (first, rest, status, client)
        });
        thread::sleep(SHORT.head / 2);
        let close = "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n";
        let (time, response) = run_client(address, close, "");
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        assert!(time < SHORT.head, "{time:?}");
        for (first, rest, status, client) in clients {
            let (time, response) = client.join().unwrap();
            // The server's timer may start a moment before the client's.
            let least = SHORT.head.saturating_sub(Duration::from_millis(50));
            assert!(
                time >= least && time < SHORT.head * 4,
                "{first:?} {rest:?} {time:?}"
            );
            let actual = response.split(' ').nth(1).unwrap_or_default();
            assert_eq!(actual, status, "{first:?} {rest:?} {response}");
            if status == "408" {
                let (_, body) = response.split_once("\r\n\r\n").unwrap();
                let body: Value = serde_json::from_str(body).unwrap();
                let detail = &body["developer_message"];
                assert_eq!(
                    detail,
                    "The body must arrive within 0.6 seconds of the headers."
                );
            }
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_stays_open_while_it_is_used_and_while_a_call_runs() {
    let running = Running::start(SHORT).await;
    let address = running.address;
    let mut stream = TcpStream::connect(address).unwrap();
    let started = Instant::now();
    let mut buffer = [0; 4_096];
    for target in ["/health", "/slow", "/health"] {
        thread::sleep(SHORT.head / 2);
        write!(stream, "GET {target} HTTP/1.1\r\n\r\n").unwrap();
        let length = stream.read(&mut buffer).unwrap();
        let response = String::from_utf8_lossy(&buffer[..length]);
        assert!(response.starts_with("HTTP/1.1 200"), "{target}: {response}");
    }
    assert!(started.elapsed() > SHORT.head * 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stop_closes_idle_connections_and_completes_running_requests() {
    let Running {
        address,
        stop,
        server,
    } = Running::start(ConnectionLimits::LOCAL).await;
    let slow = "GET /slow HTTP/1.1\r\n\r\n";
    let clients =
        ["", HEALTH, slow].map(|first| thread::spawn(move || run_client(address, first, "")));
    // Gives the server time to accept them.
    thread::sleep(SHORT.head / 2);
    stop.send(()).unwrap();
    server.await.unwrap();
    assert!(TcpStream::connect(address).is_err());
    let [silent, idle, slow] = clients.map(|client| client.join().unwrap());
    assert_eq!(silent.1, "");
    assert!(idle.1.starts_with("HTTP/1.1 200"), "{}", idle.1);
    assert!(slow.1.starts_with("HTTP/1.1 200"), "{}", slow.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_does_not_read_is_disconnected() {
    let running = Running::start(SHORT).await;
    let address = running.address;
    let client = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        let started = Instant::now();
        // Writes until the buffers of both sides are full, then until the server disconnects.
        while started.elapsed() < Duration::from_secs(10) {
            match stream.write(HEALTH.repeat(100).as_bytes()) {
                Ok(_) => {}
                Err(error) if is_timeout(&error) => thread::sleep(Duration::from_millis(20)),
                Err(_) => return started.elapsed(),
            }
        }
        panic!("the connection is still open");
    };
    let time = tokio::task::spawn_blocking(client).await.unwrap();
    assert!(time > SHORT.write, "{time:?}");
}
