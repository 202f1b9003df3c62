//! Tools for the load of `benches/soak`: each output is a function of the input, except for the
//! number of the run, so that an answer meant for another call is recognized.

use std::{
    future::pending,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use lambda_tools::{Context, Failure, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time limit of the tool that never returns.
const SHORT: Duration = Duration::from_millis(60);

/// Adds two numbers.
#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The number of the client.
    client: u32,
    /// The first number to add.
    a: i64,
    /// The second number to add.
    b: i64,
}

/// A sum.
#[derive(JsonSchema, Serialize)]
struct Sum {
    /// The number of the client.
    client: u32,
    /// The sum of both numbers.
    sum: i64,
}

async fn add(input: Add) -> Result<Sum, Failure> {
    let Add { client, a, b } = input;
    let sum = a
        .checked_add(b)
        .ok_or(Failure::new("The sum is too large"))?;
    Ok(Sum { client, sum })
}

/// Repeats a text.
#[derive(Deserialize, JsonSchema)]
struct Repeat {
    /// The number of the client.
    client: u32,
    /// The text.
    text: String,
    /// The number of times that the text is repeated.
    times: usize,
}

/// A repeated text.
#[derive(JsonSchema, Serialize)]
struct Repeated {
    /// The number of the client.
    client: u32,
    /// The repeated text.
    text: String,
}

async fn repeat(input: Repeat) -> Result<Repeated, Failure> {
    Ok(Repeated {
        client: input.client,
        text: input.text.repeat(input.times),
    })
}

/// Counts records.
#[derive(Deserialize, JsonSchema)]
struct Count {
    /// The number of the client.
    client: u32,
    /// The records.
    records: Vec<Record>,
}

/// A record.
#[derive(Deserialize, JsonSchema)]
struct Record {
    /// The id of the record.
    id: u64,
    /// The text of the record.
    text: String,
}

/// Facts about records.
#[derive(JsonSchema, Serialize)]
struct Counted {
    /// The number of the client.
    client: u32,
    /// The number of records.
    records: usize,
    /// The sum of their ids.
    ids: u64,
    /// The length of all texts in bytes.
    bytes: usize,
}

async fn count(input: Count) -> Result<Counted, Failure> {
    let records = &input.records;
    Ok(Counted {
        client: input.client,
        records: records.len(),
        ids: records.iter().map(|record| record.id).sum(),
        bytes: records.iter().map(|record| record.text.len()).sum(),
    })
}

/// Has an effect, which a repeated call must not have again.
#[derive(Deserialize, JsonSchema)]
struct Act {
    /// The number of the client.
    client: u32,
    /// The number of the call.
    number: u64,
}

/// An effect.
#[derive(JsonSchema, Serialize)]
struct Effect {
    /// The number of the client.
    client: u32,
    /// The number of the call.
    number: u64,
    /// The number of the run, which no other run of this process has.
    run: u64,
}

async fn act(input: Act) -> Result<Effect, Failure> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let Act { client, number } = input;
    let run = RUNS.fetch_add(1, Relaxed);
    Ok(Effect {
        client,
        number,
        run,
    })
}

/// Fails.
#[derive(Deserialize, JsonSchema)]
struct Fail {
    /// The number of the client.
    client: u32,
    /// The number of the call.
    number: u64,
    /// True if the call may be retried.
    retry: bool,
}

async fn fail(input: Fail) -> Result<Effect, Failure> {
    let Fail {
        client,
        number,
        retry,
    } = input;
    let failure = Failure::new("The tool failed on request")
        .developer_message(format!("call {number} of client {client}"))
        .prompt(format!("Do not repeat call {number}."));
    Err(if retry {
        failure.retry_after(Duration::from_millis(250))
    } else {
        failure
    })
}

/// Names its user, or describes its secret.
#[derive(Deserialize, JsonSchema)]
struct Client {
    /// The number of the client.
    client: u32,
}

/// A user.
#[derive(JsonSchema, Serialize)]
struct User {
    /// The number of the client.
    client: u32,
    /// The user's id.
    user: String,
}

async fn whose(input: Client, cx: Context) -> Result<User, Failure> {
    Ok(User {
        client: input.client,
        user: cx.user_id().unwrap_or_default().to_owned(),
    })
}

/// Facts about a secret that do not reveal it.
#[derive(JsonSchema, Serialize)]
struct Described {
    /// The number of the client.
    client: u32,
    /// The secret's length.
    length: usize,
    /// The sum of the secret's bytes.
    sum: u64,
}

async fn describe(input: Client, cx: Context) -> Result<Described, Failure> {
    let secret = cx.secret("LOAD_KEY")?.expose();
    Ok(Described {
        client: input.client,
        length: secret.len(),
        sum: secret.bytes().map(u64::from).sum(),
    })
}

async fn hang(_: Client) -> Result<User, Failure> {
    pending().await
}

/// All of these tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("Load.Add@1.0.0", add).idempotent(),
        Tool::new("Load.Add@2.0.0", add).idempotent(),
        Tool::new("Load.Repeat@1.0.0", repeat).idempotent(),
        Tool::new("Load.Count@1.0.0", count).idempotent(),
        Tool::new("Load.Act@1.0.0", act),
        Tool::new("Load.ActOnce@1.0.0", act).run_at_most_once(),
        Tool::new("Load.Fail@1.0.0", fail),
        Tool::new("Load.Whose@1.0.0", whose).user_id().idempotent(),
        Tool::new("Load.Describe@1.0.0", describe)
            .secret("LOAD_KEY")
            .idempotent(),
        Tool::new("Load.Hang@1.0.0", hang)
            .timeout(SHORT)
            .idempotent(),
        Tool::new("Load.Mail@1.0.0", whose)
            .authorization("google", ["https://www.googleapis.com/auth/gmail.readonly"])
            .user_id()
            .idempotent(),
        Tool::new("Load.Send@1.0.0", whose)
            .user_id()
            .scope("mail.send")
            .idempotent(),
    ]
}
