//! A function that does at night what makes operators get up.

use std::{process::Command, time::Duration};

use lambda_tools::{Failure, Server, Tool, Toolkit, serve};
use schemars::JsonSchema;
use serde::Deserialize;
use tracing::Instrument;

use crate::support::{function, isolated, runs_as_function};

/// Is more than can be sent.
#[derive(Deserialize, JsonSchema)]
struct Fill {}

async fn fill(_: Fill) -> Result<String, Failure> {
    Ok("x".repeat(7_000_000))
}

/// Keeps its thread.
#[derive(Deserialize, JsonSchema)]
struct Block {}

async fn block(_: Block) -> Result<(), Failure> {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(Duration::from_secs(2));
    Ok(())
}

/// Takes a while.
#[derive(Deserialize, JsonSchema)]
struct Sleep {}

async fn sleep(_: Sleep) -> Result<(), Failure> {
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok(())
}

/// Says a lot.
#[derive(Deserialize, JsonSchema)]
struct Quote {}

async fn quote(_: Quote) -> Result<(), Failure> {
    Err(Failure::new("It does not work").developer_message("x".repeat(1_000_000)))
}

/// Leaves something running.
#[derive(Deserialize, JsonSchema)]
struct Leave {}

async fn leave(_: Leave) -> Result<(), Failure> {
    tracing::info!(left = 1, "a line of the tool");
    let late = tokio::time::sleep(Duration::from_millis(300));
    tokio::spawn(late.instrument(tracing::info_span!("left behind")));
    Ok(())
}

/// Not a test by itself: what other tests run as a process of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "is started by other tests"]
async fn night_function() {
    if runs_as_function() {
        if std::env::var_os("HAS_SUBSCRIBER").is_some() {
            tracing_subscriber::fmt().init();
        }
        let block = Tool::new("Night.Block@1.0.0", block);
        let tools = [
            Tool::new("Night.Leave@1.0.0", leave),
            Tool::new("Night.Fill@1.0.0", fill),
            Tool::new("Night.Quote@1.0.0", quote),
            Tool::new("Night.Sleep@1.0.0", sleep),
            block.timeout(Duration::from_millis(100)),
        ];
        let server = Server::new(Toolkit::new(tools).unwrap()).on_shutdown(|| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            println!("The hook has run.");
        });
        serve(server).await.unwrap();
    }
}

pub(crate) fn night() -> Command {
    isolated(function("night::night_function"))
}
