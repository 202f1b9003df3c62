//! Clients that are slow, idle or still connected at shutdown, on real sockets.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::Instant,
};

use axum::routing::{get, post};
use tokio::task::JoinHandle;

use super::*;

const SHORT: Duration = Duration::from_millis(600);

/// The maximum number of connections.
const MOST: usize = 12;

const HEALTH: &str = "GET /health HTTP/1.1\r\n\r\n";
const LAST: &str = "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n";

/// Returns a stream that ends.
fn chunks() -> impl futures_util::Stream<Item = io::Result<&'static str>> + Send {
    futures_util::stream::iter(["a", "b"].map(Ok))
}

/// Starts a server. One of its routes takes twice as long as a request may take to arrive, one reads
/// the body, and one does not.
async fn start(limit: Duration) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
    let slow = async || tokio::time::sleep(SHORT * 2).await;
    let router = Router::new()
        .route("/health", get(async || "well"))
        .route("/slow", get(slow))
        .route("/stream", get(async || Body::from_stream(chunks())))
        .route("/read", post(async |_: String| "read"))
        .route("/unread", post(async || "unread"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let stopped = async { stopped.await.unwrap() };
    let server = tokio::spawn(async move {
        let open = serve(listener, router, limit, MOST, stopped).await;
        open.shutdown().await;
    });
    (address, stop, server)
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
    let kinds = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
    kinds.contains(&error.kind())
}

/// As when the credentials are missing: HTTP clients send a request's body after its head, and use
/// the connection again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_response_without_reading_the_body_does_not_close_the_connection() {
    let (address, _stop, _) = start(SHORT).await;
    let mut stream = TcpStream::connect(address).unwrap();
    let head = "POST /unread HTTP/1.1\r\nContent-Length: 10000\r\n\r\n";
    for part in [head, &"x".repeat(10_000), LAST] {
        stream.write_all(part.as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    let mut responses = String::new();
    stream.read_to_string(&mut responses).unwrap();
    assert!(responses.contains("unread"), "{responses}");
    assert!(responses.ends_with("well"), "{responses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn slow_and_idle_clients_are_disconnected_while_others_are_served() {
    let (address, _stop, _) = start(SHORT).await;
    let small = "POST /read HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{";
    let large = "POST /read HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{";
    let chunked = "POST /read HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let clients = [
        ("", "", ""),
        ("GET /health HTTP/1.1\r\nX-Slow: ", "x", ""),
        ("", "\r\n", ""),
        (HEALTH, "", "200"),
        (small, "", "408"),
        (small, " ", "408"),
        (large, " ", "408"),
        (chunked, "1\r\n \r\n", "408"),
    ];
    thread::scope(|scope| {
        let clients = clients.map(|(first, rest, status)| {
            let client = scope.spawn(move || run_client(address, first, rest));
            (first, rest, status, client)
        });
        thread::sleep(SHORT / 2);
        let (time, response) = run_client(address, LAST, "");
        assert!(response.ends_with("well"), "{response}");
        assert!(time < SHORT, "{time:?}");
        for (first, rest, status, client) in clients {
            let (time, response) = client.join().unwrap();
            // The server's timer may start a moment before the client's.
            let least = SHORT.saturating_sub(Duration::from_millis(50));
            let is_in_time = (least..SHORT * 4).contains(&time);
            assert!(is_in_time, "{first:?} {rest:?} {time:?}");
            let actual = response.split(' ').nth(1).unwrap_or_default();
            assert_eq!(actual, status, "{first:?} {rest:?} {response}");
            let detail = "The body must arrive within 0.6 seconds of the headers.";
            assert_eq!(response.contains(detail), status == "408", "{response}");
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_stays_open_while_it_is_used_and_while_a_call_runs() {
    let (address, _stop, _) = start(SHORT).await;
    let mut stream = TcpStream::connect(address).unwrap();
    let started = Instant::now();
    let mut buffer = [0; 4_096];
    for target in ["/health", "/slow", "/health"] {
        thread::sleep(SHORT / 2);
        write!(stream, "GET {target} HTTP/1.1\r\n\r\n").unwrap();
        let length = stream.read(&mut buffer).unwrap();
        let response = String::from_utf8_lossy(&buffer[..length]);
        assert!(response.starts_with("HTTP/1.1 200"), "{target}: {response}");
    }
    assert!(started.elapsed() > SHORT * 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stop_closes_idle_connections_and_completes_running_requests() {
    let (address, stop, server) = start(CLIENT_LIMIT).await;
    let slow = "GET /slow HTTP/1.1\r\n\r\n";
    let clients =
        ["", HEALTH, slow].map(|first| thread::spawn(move || run_client(address, first, "")));
    // Gives the server time to accept them.
    thread::sleep(SHORT / 2);
    stop.send(()).unwrap();
    server.await.unwrap();
    assert!(TcpStream::connect(address).is_err());
    let [silent, idle, slow] = clients.map(|client| client.join().unwrap().1);
    assert_eq!(silent, "");
    assert!(idle.starts_with("HTTP/1.1 200"), "{idle}");
    assert!(slow.starts_with("HTTP/1.1 200"), "{slow}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn requests_beyond_the_limit_wait_until_others_are_answered() {
    let (address, _stop, _) = start(CLIENT_LIMIT).await;
    let slow = "GET /slow HTTP/1.1\r\nConnection: close\r\n\r\n";
    let started = Instant::now();
    let open = [(); MOST].map(|()| thread::spawn(move || run_client(address, slow, "")));
    thread::sleep(SHORT / 4);
    let (_, response) = run_client(address, LAST, "");
    assert!(response.ends_with("well"), "{response}");
    assert!(started.elapsed() >= SHORT * 2);
    for client in open {
        // None of them was idle.
        let (_, response) = client.join().unwrap();
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn connections_without_a_complete_request_keep_no_place() {
    for sent in [
        "",
        "GET /health HTTP/1.1\r\nX-Half: ",
        "POST /read HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{",
        "POST /read HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{",
        "POST /read HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n ",
        HEALTH,
        "GET /stream HTTP/1.1\r\n\r\n",
    ] {
        let (address, _stop, _) = start(CLIENT_LIMIT).await;
        let open = [(); MOST * 2].map(|()| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(sent.as_bytes()).unwrap();
            stream
        });
        let (time, response) = run_client(address, LAST, "");
        assert!(response.ends_with("well"), "{sent:?} {response}");
        assert!(time < Duration::from_secs(1), "{sent:?} {time:?}");
        drop(open);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_connection_that_was_idle_for_the_longest_time_is_closed_first() {
    let (address, _stop, _) = start(CLIENT_LIMIT).await;
    let mut open: Vec<_> = [(); MOST - 1]
        .map(|()| TcpStream::connect(address).unwrap())
        .into();
    thread::sleep(SHORT / 2);
    // The oldest connection is used, so the second one has been idle for longer.
    let mut buffer = [0; 4_096];
    open[0].write_all(HEALTH.as_bytes()).unwrap();
    assert!(open[0].read(&mut buffer).unwrap() > 0);
    open.push(TcpStream::connect(address).unwrap());
    thread::sleep(SHORT / 8);
    let is_open = open.iter_mut().map(|stream| {
        stream.set_nonblocking(true).unwrap();
        stream
            .read(&mut buffer)
            .is_err_and(|error| is_timeout(&error))
    });
    let is_open: Vec<_> = is_open.collect();
    assert!(is_open[0] && is_open[MOST - 1], "{is_open:?}");
    let closed = is_open.iter().filter(|it| !**it).count();
    assert_eq!((closed, is_open[1]), (1, false), "{is_open:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_does_not_read_is_disconnected() {
    let (address, _stop, _) = start(SHORT).await;
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
    assert!(time > SHORT, "{time:?}");
}
