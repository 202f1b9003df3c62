//! Reading a response from a stream of server-sent events.
//!
//! A server may send progress before the response, and may leave the stream open after it, so the
//! stream is searched while it arrives.

use std::sync::Arc;

use memchr::memchr2;
use serde_json::Value;

use super::message::answers;
use crate::{
    client::{ClientError, budget::ResponseBudget},
    json::JsonError,
};

/// Finds the response to one request in a stream.
pub(super) struct EventReader {
    id: u64,
    budget: Arc<ResponseBudget>,
    /// The start of the first line that was not read yet.
    position: usize,
    /// The end of the part that was searched for the end of that line.
    searched: usize,
    is_message: bool,
    data: Vec<u8>,
    response: Option<Value>,
    /// The reason why an event was not read although it is JSON.
    error: Option<ClientError>,
}

impl EventReader {
    pub(super) fn new(id: u64, budget: Arc<ResponseBudget>) -> Self {
        Self {
            id,
            budget,
            position: 0,
            searched: 0,
            is_message: true,
            data: Vec::new(),
            response: None,
            error: None,
        }
    }

    /// Reads the lines that have arrived completely; returns true once the response is found.
    pub(super) fn read(&mut self, stream: &[u8]) -> bool {
        while self.response.is_none()
            && let Some((end, next)) = self.line_end(stream)
        {
            self.line(&stream[self.position..end]);
            self.position = next;
            self.searched = next;
        }
        self.response.is_some()
    }

    /// The end of the current line, and the start of the next one. A CR at the end of the input may
    /// be the first half of a CRLF.
    fn line_end(&mut self, stream: &[u8]) -> Option<(usize, usize)> {
        let Some(at) = memchr2(b'\n', b'\r', &stream[self.searched..]) else {
            self.searched = stream.len();
            return None;
        };
        let end = self.searched + at;
        self.searched = end;
        match (stream[end], stream.get(end + 1)) {
            (b'\r', None) => None,
            (b'\r', Some(b'\n')) => Some((end, end + 2)),
            _ => Some((end, end + 1)),
        }
    }

    /// The response, at the end of the stream, or else the error of another event. The last event
    /// counts without its empty line.
    pub(super) fn finish(mut self, stream: &[u8]) -> Option<Result<Value, ClientError>> {
        if !self.read(stream) {
            self.line(stream[self.position..].trim_ascii_end());
            if self.response.is_none() {
                self.dispatch();
            }
        }
        self.response.map(Ok).or(self.error.map(Err))
    }

    /// HTML, Server-sent events, Interpreting an event stream.
    fn line(&mut self, line: &[u8]) {
        let line = match line.strip_prefix(b"\xEF\xBB\xBF") {
            Some(rest) if self.position == 0 => rest,
            _ => line,
        };
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.is_message = matches!(value, b"" | b"message"),
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            // Comments, ids and reconnection times.
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        let data = std::mem::take(&mut self.data);
        let is_message = std::mem::replace(&mut self.is_message, true);
        if !is_message {
            return;
        }
        match self.budget.read(&data) {
            Ok(message) => self.response = Some(message).filter(|it| answers(it, self.id)),
            // The stream may have broken off.
            Err(JsonError::Syntax(_)) => {}
            Err(error) => self.error = Some(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STREAM: &str = "\u{feff}: hello\nid: 1\nretry: 10\ndata\n\n\
        event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n\
        event: other\ndata: {\"id\":7,\"result\":{\"wrong\":1}}\n\n\
        data: {\"id\":8,\"result\":{\"wrong\":2}}\n\ndata: no JSON\n\n\
        data:{\"id\":7,\ndata: \"result\":{\"right\":3}}\n\n";

    /// The response, if the stream arrives in pieces of this size.
    fn response(stream: &[u8], size: usize) -> Option<Value> {
        let mut reader = EventReader::new(7, ResponseBudget::new(1 << 20));
        let mut arrived = Vec::new();
        for piece in stream.chunks(size) {
            arrived.extend_from_slice(piece);
            if reader.read(&arrived) {
                break;
            }
        }
        reader.finish(&arrived)?.ok()
    }

    #[test]
    fn the_response_is_found_in_every_form_of_stream() {
        let expected = Some(json!({"id": 7, "result": {"right": 3}}));
        for line_end in ["\n", "\r\n", "\r"] {
            let stream = STREAM.replace('\n', line_end);
            for size in [1, 2, 3, 7, stream.len()] {
                assert_eq!(response(stream.as_bytes(), size), expected, "{line_end:?}");
                let unfinished = stream.trim_end().as_bytes();
                assert_eq!(response(unfinished, size), expected, "{line_end:?}");
            }
        }
        let mut reader = EventReader::new(7, ResponseBudget::new(1 << 20));
        assert!(reader.read(STREAM.as_bytes()), "before the stream ends");
        assert_eq!(response(b"data: {\"id\":9,\"result\":{}}\n\n", 4), None);
        assert_eq!(response(b"", 1), None);
    }

    #[test]
    fn a_mangled_stream_is_no_panic() {
        for at in 0..STREAM.len() {
            for byte in [0, b'\r', b'\n', b':', b'{', 0xFF] {
                let mut stream = STREAM.as_bytes().to_vec();
                stream[at] = byte;
                let _ = response(&stream, 5);
                let _ = response(&stream[..at], 11);
            }
        }
    }
}
