//! The platform's API, with which the function invokes itself: accepts events, and delivers them as
//! the plan says.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{attempt::Event, history::Outcome, plan::Step, run::Run};

/// The pause before an event is delivered again, which failed.
const BEFORE_RETRY: Duration = Duration::from_millis(50);

/// Serves the API.
pub(crate) async fn serve_events(run: Arc<Run>, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let run = Arc::clone(&run);
        // Goes on when the function has died.
        tokio::spawn(async move {
            let mut stream = BufReader::new(stream);
            while accept(&run, &mut stream).await.is_some() {}
        });
    }
}

/// Accepts one event. `None` if the connection is closed.
async fn accept(run: &Arc<Run>, stream: &mut BufReader<TcpStream>) -> Option<()> {
    let (process, event) = read(stream).await?;
    let attempt = run.attempt_of(process)?;
    if run.reach(process, attempt, Step::BeforeInvoke).await {
        tokio::time::sleep(run.plan_of(attempt).death?.in_flight?).await;
    }
    let item = run.history.lock().unwrap().attempts[attempt].item;
    let task = event["lambda_tools"]["task"].as_str().map(str::to_owned);
    run.note(attempt, |it, _| it.task = task);
    let number = run.events.fetch_add(1, Ordering::Relaxed);
    for delay in run.deliveries(number) {
        tokio::spawn(run.late(deliver(Arc::clone(run), item, event.clone(), delay)));
    }
    let unconfirmed = run.plan.tasks.as_ref().map_or(0, |it| it.unconfirmed);
    if run.reach(process, attempt, Step::AfterInvoke).await || number < unconfirmed {
        return None;
    }
    let response = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(response).await.ok()
}

/// Reads a request: the number of the process that signed it, and the event.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<(usize, Value)> {
    let (mut process, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let line = line.trim_end();
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().ok()?;
            }
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                let (_, credential) = value.split_once("Credential=")?;
                process = credential.split('/').next()?.parse().ok();
            }
            None if line.is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((process?, serde_json::from_slice(&body).ok()?))
}

/// Delivers an event, again if that fails and the plan says so.
async fn deliver(run: Arc<Run>, item: u32, event: Value, delay: Duration) {
    let retries = run.plan.tasks.as_ref().map_or(0, |it| it.retries);
    tokio::time::sleep(delay).await;
    for _ in 0..=retries {
        let answer = run.attempt(Event::Work(item, event.clone())).await;
        if answer.is_some_and(|it| it.outcome == Outcome::Done) {
            break;
        }
        tokio::time::sleep(BEFORE_RETRY).await;
    }
}

impl Run {
    /// Returns the delays of an event's deliveries.
    fn deliveries(&self, number: usize) -> Vec<Duration> {
        let tasks = self.plan.tasks.as_ref();
        let planned = tasks.and_then(|it| it.deliveries.get(number).cloned());
        planned.unwrap_or_else(|| vec![Duration::ZERO])
    }
}
