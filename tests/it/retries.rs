//! A call that a published client retries.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_tools::{Context, Failure, Tool, Toolkit, idempotency::Idempotency};
use serde_json::{Value, json};
use test_support::{installed, repository};

use crate::support::server;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client oxp; run tests/all"]
async fn a_call_that_the_published_client_retries_has_one_effect() {
    let effects = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&effects);
    let slow = move |_: Value, _: Context| {
        let counted = Arc::clone(&counted);
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            // Longer than the client waits.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            Ok::<_, Failure>(json!("done"))
        }
    };
    let object = json!({"type": "object"});
    let tool = Tool::dynamic("Effect.Slow@1.0.0", "Acts.", object, json!({}), slow);
    let server = server(Toolkit::new([tool]).unwrap());
    let router = server
        .idempotency(Idempotency::in_memory())
        .into_router()
        .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let run = move || {
        Command::new(installed("python"))
            .arg(repository("tests/it/oxp_retries.py"))
            .arg(url)
            .output()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // The number of requests, and the value.
    assert_eq!(stdout, "2 done\n");
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}
