//! The events of `POST /opentool/streamCall`: `start`, then `data` and `done`, or `error`.
//!
//! The published client for Dart expects exactly this text, looks for events in each chunk by
//! itself, and loses one that is split.

use axum::body::Bytes;
use serde_json::json;

use crate::protocol::{body::ResponseBody, json_response::to_json};

/// The events of one response.
pub(super) struct Events {
    method: String,
    /// True once the first event has been taken.
    has_begun: bool,
}

impl Events {
    pub(super) fn of(method: String) -> Self {
        Self {
            method,
            has_begun: false,
        }
    }

    /// Takes the first event.
    pub(super) fn start(&mut self) -> Bytes {
        self.has_begun = true;
        self.first()
    }

    fn first(&self) -> Bytes {
        event("start", &to_json(&json!({"start": self.method})))
    }

    /// Returns the events of a response, without the first one if it has been taken.
    pub(super) fn end(&self, response: &[u8], is_success: bool) -> ResponseBody {
        let mut events = Vec::new();
        if !self.has_begun {
            events.push(self.first());
        }
        if is_success {
            let done = to_json(&json!({"done": self.method}));
            events.extend([event("data", response), event("done", &done)]);
        } else {
            events.push(event("error", response));
        }
        ResponseBody::Events(events)
    }
}

fn event(name: &str, json: &[u8]) -> Bytes {
    let head = format!("event:{name}\ndata:");
    [head.as_bytes(), json, b"\n\n"].concat().into()
}
