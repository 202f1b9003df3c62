//! The limits of a streamed call, and its end in the log.

use std::{future::pending, time::SystemTime};

use tracing::subscriber::{DefaultGuard, set_default};

use super::*;
use crate::observe::tests::Lines;

/// Returns a log, and the outcomes in it.
fn log() -> (DefaultGuard, impl Fn() -> Vec<String>) {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false);
    let guard = set_default(subscriber.with_writer(lines.clone()).finish());
    let outcomes = move || {
        let log = lines.text();
        let rest = log.split("outcome=\"").skip(1);
        rest.map(|it| it.split('"').next().unwrap().to_owned())
            .collect()
    };
    (guard, outcomes)
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_stream_obeys_the_limits_of_its_call_and_is_logged_at_its_end() {
    for (size, time, text) in [
        (3000, 60_000, "The tool's result is too large to send"),
        (usize::MAX, 500, "The tool did not finish in time"),
    ] {
        let (_guard, logged) = log();
        let server = server_of(|cx| async move {
            cx.progress(1, None, "");
            ms(600).await;
            json!("x".repeat(1000))
        });
        let mut asked = Asked::default();
        let deadline = SystemTime::now() + Duration::from_millis(time);
        asked.invocation.max_response_size = Some(size);
        asked.invocation.deadline = Some(deadline);
        let mut body = asked.of(server).await.into_body();
        assert!(body.frame().await.is_some());
        assert_eq!(logged(), [""; 0]);
        let rest = body.collect().await.unwrap().to_bytes();
        let rest = String::from_utf8_lossy(&rest);
        assert!(rest.contains(text), "{rest}");
        assert_eq!(logged(), ["failure"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_ends_its_call_and_is_logged_as_abandoned() {
    let (_guard, logged) = log();
    let running = Arc::new(());
    let held = Arc::downgrade(&running);
    let server = server(move |cx| {
        let running = held.upgrade();
        async move {
            cx.progress(1, None, "");
            pending::<()>().await;
            drop(running);
        }
    });
    let mut body = Asked::default().of(server).await.into_body();
    assert!(body.frame().await.is_some());
    assert_eq!(Arc::strong_count(&running), 2);
    drop(body);
    assert_eq!(logged(), ["abandoned"]);
    ms(10).await;
    assert_eq!(Arc::strong_count(&running), 1);
}
