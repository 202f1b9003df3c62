//! The same program as a local server, with connections of which some are slow or half-closed.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{answer::Answer, event::Event, recorder::Recorder};

/// The number of requests after which a client opens a new connection.
const REQUESTS: u32 = 200;
/// The longest wait for the server's start, and for an answer to a misbehaving client.
const LIMIT: Duration = Duration::from_secs(20);
/// The time between two misbehaving clients.
const MISBEHAVING_EVERY: Duration = Duration::from_millis(300);

/// The local server.
pub(crate) struct LocalServer {
    address: SocketAddr,
    store_failures: Arc<AtomicU64>,
}

/// A client's connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    requests: u32,
}

impl LocalServer {
    /// Waits until the server listens at this address.
    pub(crate) async fn start(
        address: SocketAddr,
        store_failures: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let listens = async {
            while TcpStream::connect(address).await.is_err() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(LIMIT, listens).await?;
        Ok(Self {
            address,
            store_failures,
        })
    }

    /// Sends a request on the client's connection, and returns the answer and its time.
    pub(crate) async fn respond(
        &self,
        event: &Event,
        connection: &mut Option<Connection>,
    ) -> (Result<Answer, String>, Duration) {
        let begun = Instant::now();
        let failures = self.store_failures.load(SeqCst);
        let result = self.exchange(event, connection).await;
        let answer = result.map_err(|error| {
            *connection = None;
            format!("no answer over HTTP: {error}")
        });
        let answer = answer.map(|(status, headers, body)| {
            let failures = self.store_failures.load(SeqCst) - failures;
            Answer::over_http(status, headers, body, failures)
        });
        (answer, begun.elapsed())
    }

    async fn exchange(
        &self,
        event: &Event,
        connection: &mut Option<Connection>,
    ) -> io::Result<(u16, BTreeMap<String, String>, Vec<u8>)> {
        if connection.as_ref().is_none_or(|it| it.requests >= REQUESTS) {
            let stream = BufReader::new(TcpStream::connect(self.address).await?);
            *connection = Some(Connection {
                stream,
                requests: 0,
            });
        }
        let connection = connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        connection.requests += 1;
        let request = event.as_http();
        connection.stream.write_all(&request).await?;
        read_response(&mut connection.stream).await
    }
}

async fn read_response(
    stream: &mut BufReader<TcpStream>,
) -> io::Result<(u16, BTreeMap<String, String>, Vec<u8>)> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status line: {line:?}")))?;
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|it| it.parse().ok());
    let length = if status == 304 {
        0
    } else {
        length.unwrap_or(0)
    };
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    // Differs from answer to answer.
    headers.remove("date");
    Ok((status, headers, body))
}

/// Opens connections as clients should not, until the run is over.
pub(crate) async fn misbehave(address: SocketAddr, recorder: &Recorder, is_over: &AtomicBool) {
    for number in 0_u64.. {
        if is_over.load(Relaxed) {
            return;
        }
        sleep(MISBEHAVING_EVERY).await;
        let (kind, result) = match number % 4 {
            0 => ("half-closed connection", half_closed(address).await),
            1 => ("slow connection", slow(address).await),
            2 => ("incomplete request", incomplete(address).await),
            _ => ("connection without a request", unused(address).await),
        };
        recorder.answered(kind, Duration::ZERO, false);
        if let Err(error) = result {
            recorder.wrong(kind, &error.to_string());
        }
    }
}

const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// The client closes its side after the request. It gets the response, or nothing.
async fn half_closed(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(HEALTH).await?;
    stream.shutdown().await?;
    let mut response = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut response)).await??;
    expect_health(&response, true)
}

/// The client needs a second for its request.
async fn slow(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    for part in HEALTH.chunks(8) {
        stream.write_all(part).await?;
        sleep(Duration::from_millis(200)).await;
    }
    let mut response = vec![0; 4096];
    let length = timeout(LIMIT, stream.read(&mut response)).await??;
    expect_health(&response[..length], false)
}

/// The client closes the connection in the middle of a body.
async fn incomplete(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let head = b"POST /tools/call HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{";
    stream.write_all(head).await?;
    sleep(Duration::from_millis(100)).await;
    Ok(())
}

async fn unused(address: SocketAddr) -> io::Result<()> {
    let stream = TcpStream::connect(address).await?;
    sleep(Duration::from_secs(1)).await;
    drop(stream);
    Ok(())
}

fn expect_health(response: &[u8], may_be_empty: bool) -> io::Result<()> {
    if response.starts_with(b"HTTP/1.1 200 ") || may_be_empty && response.is_empty() {
        return Ok(());
    }
    let response = String::from_utf8_lossy(response);
    Err(io::Error::other(format!("not healthy: {response}")))
}
