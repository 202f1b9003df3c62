//! Progress notifications: the events of a response before its result.
//!
//! Reference: 2026-07-28 and 2025-11-25, Progress, Streamable HTTP.

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use http::HeaderMap;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::{
    select,
    sync::{oneshot, watch},
    time::{Instant, sleep_until, timeout},
};

use super::transport::accepts;
use crate::{
    protocol::body::event,
    tool::progress::{Follower, Progress},
    wire::jsonrpc,
};

/// The minimum time between two notifications. Of the reports in between, only the last one is
/// sent.
const PAUSE: Duration = Duration::from_millis(20);

/// The time without a report after which the last one is sent again, because clients and proxies
/// give up on a silent connection.
const SILENCE: Duration = Duration::from_secs(10);

/// The progress of a call whose client asks for it.
pub(super) struct ProgressStream {
    /// The token of the request: a string or an integer.
    token: Value,
    /// Dropped with the call: the tool may keep its follower for longer.
    ending: Option<oneshot::Sender<()>>,
}

impl ProgressStream {
    /// Returns the stream for a request with this `_meta`. `None` if the client does not ask for
    /// progress, or does not accept a stream.
    pub(super) fn of(headers: &HeaderMap, meta: &mut Value) -> Option<Box<Self>> {
        let token = meta.get_mut("progressToken")?.take();
        let is_token = token.is_string() || token.is_i64() || token.is_u64();
        let is_asked = is_token && accepts(headers, &["text/event-stream", "text/*"]);
        let ending = None;
        is_asked.then(|| Box::new(Self { token, ending }))
    }

    /// Returns the notifications of a call, and the follower that they come from.
    pub(super) fn begin(&mut self) -> (Follower, Body) {
        let (reports, latest) = watch::channel(None::<Progress>);
        let (ending, ended) = oneshot::channel::<()>();
        self.ending = Some(ending);
        let follower = Follower::new(move |report| {
            reports.send_if_modified(|latest| {
                let advances = latest.as_ref().is_none_or(|it| it.done < report.done);
                if advances {
                    *latest = Some(report);
                }
                advances
            });
        });
        let notifications = Notifications {
            token: self.token.take(),
            latest,
            ended,
            sent: None,
            next: Instant::now(),
        };
        let frames = stream::unfold(notifications, |mut it| async move {
            let frame = Frame::data(it.next().await?);
            Some((Ok::<_, axum::Error>(frame), it))
        });
        (follower, Body::new(StreamBody::new(frames)))
    }
}

struct Notifications {
    token: Value,
    latest: watch::Receiver<Option<Progress>>,
    /// Completes with the call.
    ended: oneshot::Receiver<()>,
    /// The progress in the last notification.
    sent: Option<f64>,
    /// The earliest time of the next notification.
    next: Instant,
}

impl Notifications {
    /// Waits for the next notification. `None` at the end of the call.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.ended.is_terminated() {
            select! {
                () = sleep_until(self.next) => {}
                // The last report does not wait.
                _ = &mut self.ended => {}
            }
        }
        // An error is a timeout, not the end of the reports.
        if let Ok(changed) = timeout(SILENCE, self.latest.changed()).await {
            changed.ok()?;
        }
        self.next = Instant::now() + PAUSE;
        let latest = self.latest.borrow_and_update().clone();
        let report = latest.unwrap_or(Progress {
            done: 0.0,
            total: None,
            message: String::new(),
        });
        // The progress must increase, even without a new report.
        let done = match self.sent {
            Some(sent) if report.done <= sent => sent + (sent.abs() * 1e-6).max(1e-6),
            _ => report.done,
        };
        self.sent = Some(done);
        let mut params = json!({"progressToken": self.token, "progress": done});
        if let Some(total) = report.total {
            params["total"] = json!(total);
        }
        if !report.message.is_empty() {
            params["message"] = json!(report.message);
        }
        let method = "notifications/progress";
        let message = json!({"jsonrpc": jsonrpc::VERSION, "method": method, "params": params});
        Some(event(message.to_string().as_bytes()))
    }
}

#[cfg(test)]
mod tests;
