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
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let Add { client, a, b } = input;
    let sum = a
        .checked_add(b)
        .ok_or(Failure::new("The sum is too large"))?;
    leak();
    let number = CALLS.fetch_add(1, Relaxed) + 1;
    let is_wrong = planted("WRONG_EVERY").is_some_and(|every| number.is_multiple_of(every));
    Ok(Sum {
        client,
        sum: if is_wrong { !sum } else { sum },
    })
}

/// Leaks memory if a test wants to see that the soak finds it.
fn leak() {
    if let Some(Ok(bytes)) = planted("LEAKED_BYTES").map(usize::try_from) {
        std::mem::forget(vec![1_u8; bytes]);
    }
}

/// Returns the number in an environment variable that plants a fault.
fn planted(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Joins the texts of records.
#[derive(Deserialize, JsonSchema)]
struct Join {
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

/// The texts, in the order of their ids.
#[derive(JsonSchema, Serialize)]
struct Joined {
    /// The number of the client.
    client: u32,
    /// All texts.
    text: String,
}

async fn join(input: Join) -> Result<Joined, Failure> {
    let Join {
        client,
        mut records,
    } = input;
    records.sort_by_key(|record| record.id);
    let text = records.into_iter().map(|record| record.text).collect();
    Ok(Joined { client, text })
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
    leak();
    let Act { client, number } = input;
    let run = RUNS.fetch_add(1, Relaxed);
    Ok(Effect {
        client,
        number,
        run,
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
    leak();
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
    leak();
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

/// Returns all of these tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("Load.Add@1.0.0", add).idempotent(),
        Tool::new("Load.Join@1.0.0", join).idempotent(),
        Tool::new("Load.Act@1.0.0", act),
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
