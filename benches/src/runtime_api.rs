//! A Lambda Runtime API on a loopback address, which measures.
//!
//! Neutral: the same few lines of HTTP for every contestant. Time counts from the moment in which
//! an event is handed over to the moment in which its answer has arrived whole.

use std::{
    collections::VecDeque,
    io::{
        BufRead, BufReader, Write, {self},
    },
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant, SystemTime},
};

/// An event to hand over.
pub(crate) type Event = Arc<[u8]>;

/// What came back for one event.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) latency: Duration,
    pub(crate) body: Vec<u8>,
    pub(crate) is_error: bool,
}

#[derive(Default)]
struct State {
    /// When the function first asked for an event.
    asked_first: Option<Instant>,
    events: VecDeque<Event>,
    handed_over: Option<Instant>,
    answers: Vec<Answer>,
    /// When the last answer arrived.
    answered_last: Option<Instant>,
    closed: bool,
}

/// The runtime API of one function.
pub(crate) struct RuntimeApi {
    pub(crate) address: SocketAddr,
    shared: Arc<(Mutex<State>, Condvar)>,
}

/// How long anything may take before the function counts as hung.
const PATIENCE: Duration = Duration::from_secs(30);

impl RuntimeApi {
    pub(crate) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if served.0.lock().is_ok_and(|state| state.closed) {
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

    /// Waits until the function has asked for its first event; returns when it did.
    pub(crate) fn first_ask(&self) -> Instant {
        self.wait(|state| state.asked_first)
    }

    /// Hands over events one after the other; returns the answers, and the time from the first
    /// event to the last answer.
    pub(crate) fn run(&self, events: &[Event]) -> (Vec<Answer>, Duration) {
        let begun = Instant::now();
        {
            let (state, changed) = &*self.shared;
            let mut state = state.lock().expect("no thread panicked");
            state.answers.clear();
            state.events.extend(events.iter().cloned());
            changed.notify_all();
        }
        let count = events.len();
        let ended = self.wait(|state| {
            (state.answers.len() == count).then_some(())?;
            state.answered_last
        });
        let (state, _) = &*self.shared;
        let answers = state.lock().expect("no thread panicked").answers.clone();
        (answers, ended.saturating_duration_since(begun))
    }

    fn wait<T>(&self, ready: impl Fn(&State) -> Option<T>) -> T {
        let (state, changed) = &*self.shared;
        let mut state = state.lock().expect("no thread panicked");
        loop {
            if let Some(value) = ready(&state) {
                return value;
            }
            let (next, timeout) = changed
                .wait_timeout(state, PATIENCE)
                .expect("no thread panicked");
            assert!(!timeout.timed_out(), "the function does not answer");
            state = next;
        }
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        let (state, changed) = &*self.shared;
        if let Ok(mut state) = state.lock() {
            state.closed = true;
        }
        changed.notify_all();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn connection(stream: TcpStream, shared: &(Mutex<State>, Condvar)) {
    let _ = stream.set_nodelay(true);
    let Ok(reading) = stream.try_clone() else {
        return;
    };
    let mut reading = BufReader::with_capacity(1 << 16, reading);
    let mut writing = stream;
    // The function closes the connection, or is killed: either ends the loop.
    while let Ok(Some((line, body))) = request(&mut reading) {
        let written = if line.contains("/invocation/next") {
            hand_over(&mut writing, shared)
        } else {
            take_answer(&line, body, shared);
            writing.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        };
        if written.is_err() {
            return;
        }
    }
}

/// The first line and the body of the next request.
fn request(reading: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut first = String::new();
    if reading.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut line = String::new();
        reading.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        chunked |= line.starts_with("transfer-encoding:") && line.contains("chunked");
    }
    let mut body = vec![0; length];
    reading.read_exact(&mut body)?;
    if chunked {
        body = chunks(reading)?;
    }
    Ok(Some((first, body)))
}

fn chunks(reading: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reading.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        let begin = body.len();
        body.resize(begin + size, 0);
        reading.read_exact(&mut body[begin..])?;
        reading.read_line(&mut line)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn hand_over(writing: &mut impl Write, shared: &(Mutex<State>, Condvar)) -> io::Result<()> {
    let now = Instant::now();
    let (state, changed) = shared;
    let mut state = state
        .lock()
        .map_err(|_| io::Error::other("a thread panicked"))?;
    state.asked_first.get_or_insert(now);
    changed.notify_all();
    let event = loop {
        if state.closed {
            return Err(io::Error::other("closed"));
        }
        if let Some(event) = state.events.pop_front() {
            break event;
        }
        state = changed
            .wait(state)
            .map_err(|_| io::Error::other("a thread panicked"))?;
    };
    let deadline = SystemTime::now() + PATIENCE;
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
    state.handed_over = Some(Instant::now());
    drop(state);
    writing.write_all(&response)
}

fn take_answer(line: &str, body: Vec<u8>, shared: &(Mutex<State>, Condvar)) {
    let now = Instant::now();
    let (state, changed) = shared;
    let Ok(mut state) = state.lock() else {
        return;
    };
    let begun = state.handed_over.take().unwrap_or(now);
    state.answers.push(Answer {
        latency: now - begun,
        body,
        is_error: line.contains("/error"),
    });
    state.answered_last = Some(now);
    if state.events.is_empty() {
        changed.notify_all();
    }
}
