//! A Lambda Runtime API on a loopback address that measures its function.
//!
//! It is neutral: the same few lines of HTTP for every contestant. The time of an event runs from
//! the moment it is sent to the moment its complete response has arrived.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant, SystemTime},
};

/// An event for the function.
pub(crate) type Event = Arc<[u8]>;

/// The function's response to one event.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) latency: Duration,
    pub(crate) body: Vec<u8>,
    pub(crate) is_error: bool,
}

#[derive(Default)]
struct State {
    /// The time of the function's first request for an event.
    first_request: Option<Instant>,
    events: VecDeque<Event>,
    /// The time the current event was sent.
    sent: Option<Instant>,
    replies: Vec<Reply>,
    /// The time of the last response.
    last_reply: Option<Instant>,
    is_closed: bool,
}

/// The runtime API of one function.
pub(crate) struct RuntimeApi {
    pub(crate) address: SocketAddr,
    shared: Arc<(Mutex<State>, Condvar)>,
}

/// The longest wait for anything before the function counts as hung.
const HANG_TIMEOUT: Duration = Duration::from_secs(30);

impl RuntimeApi {
    pub(crate) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if served.0.lock().is_ok_and(|state| state.is_closed) {
                    return;
                }
                let served = Arc::clone(&served);
                if let Ok(stream) = stream {
                    std::thread::spawn(move || connection(stream, &served));
                }
            }
        });
        Ok(Self { address, shared })
    }

    /// Waits for the function's first request for an event; returns its time.
    pub(crate) fn first_request(&self) -> Instant {
        self.wait(|state| state.first_request)
    }

    /// Sends events one at a time; returns the responses, and the time from the first event to the
    /// last response.
    pub(crate) fn run(&self, events: &[Event]) -> (Vec<Reply>, Duration) {
        let begun = Instant::now();
        {
            let (state, changed) = &*self.shared;
            let mut state = state.lock().expect("no thread panicked");
            state.replies.clear();
            state.events.extend(events.iter().cloned());
            changed.notify_all();
        }
        let count = events.len();
        let ended = self.wait(|state| {
            (state.replies.len() == count).then_some(())?;
            state.last_reply
        });
        let (state, _) = &*self.shared;
        let replies = state.lock().expect("no thread panicked").replies.clone();
        (replies, ended.saturating_duration_since(begun))
    }

    fn wait<T>(&self, value_in: impl Fn(&State) -> Option<T>) -> T {
        let (state, changed) = &*self.shared;
        let mut state = state.lock().expect("no thread panicked");
        loop {
            if let Some(value) = value_in(&state) {
                return value;
            }
            let (next, timeout) = changed
                .wait_timeout(state, HANG_TIMEOUT)
                .expect("no thread panicked");
            assert!(!timeout.timed_out(), "the function does not respond");
            state = next;
        }
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        let (state, changed) = &*self.shared;
        if let Ok(mut state) = state.lock() {
            state.is_closed = true;
        }
        changed.notify_all();
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

fn connection(stream: TcpStream, shared: &(Mutex<State>, Condvar)) {
    let _ = stream.set_nodelay(true);
    let Ok(reader) = stream.try_clone() else {
        return;
    };
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let mut writer = stream;
    // Kept, so that no response waits for the kernel to provide memory for it.
    let mut buffer = Vec::new();
    // The function closes the connection or is killed: either ends the loop.
    while let Ok(Some((line, length))) = read_request(&mut reader, &mut buffer) {
        let result = if line.contains("/invocation/next") {
            send_event(&mut writer, shared)
        } else {
            record_reply(&line, &buffer[..length], shared);
            writer.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        };
        if result.is_err() {
            return;
        }
    }
}

/// Reads the first line of the next request, and the length of its body, with which the buffer
/// begins.
fn read_request(
    reader: &mut impl BufRead,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<(String, usize)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    reader.read_exact(&mut buffer[..length])?;
    Ok(Some((first, length)))
}

fn send_event(writer: &mut impl Write, shared: &(Mutex<State>, Condvar)) -> io::Result<()> {
    let now = Instant::now();
    let (state, changed) = shared;
    let mut state = state
        .lock()
        .map_err(|_| io::Error::other("a thread panicked"))?;
    state.first_request.get_or_insert(now);
    changed.notify_all();
    let event = loop {
        if state.is_closed {
            return Err(io::Error::other("closed"));
        }
        if let Some(event) = state.events.pop_front() {
            break event;
        }
        state = changed
            .wait(state)
            .map_err(|_| io::Error::other("a thread panicked"))?;
    };
    let deadline = SystemTime::now() + HANG_TIMEOUT;
    let deadline = deadline
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut response = format!(
        "HTTP/1.1 200 OK\r\n\
         content-type: application/json\r\n\
         lambda-runtime-aws-request-id: 8476a536-e9f4-11e8-9739-2dfe598c3fcd\r\n\
         lambda-runtime-deadline-ms: {}\r\n\
         lambda-runtime-invoked-function-arn: arn:aws:lambda:us-east-1:123456789012:function:f\r\n\
         content-length: {}\r\n\r\n",
        deadline.as_millis(),
        event.len()
    )
    .into_bytes();
    response.extend_from_slice(&event);
    state.sent = Some(Instant::now());
    drop(state);
    writer.write_all(&response)
}

fn record_reply(line: &str, body: &[u8], shared: &(Mutex<State>, Condvar)) {
    let now = Instant::now();
    let (state, changed) = shared;
    let Ok(mut state) = state.lock() else {
        return;
    };
    let begun = state.sent.take().unwrap_or(now);
    state.replies.push(Reply {
        latency: now - begun,
        body: body.to_vec(),
        is_error: line.contains("/error"),
    });
    state.last_reply = Some(now);
    if state.events.is_empty() {
        changed.notify_all();
    }
}
