//! The function that is killed: tools of each repeat policy, in their requests and in the
//! background, whose effects happen on a server.

use std::{env, future::pending, time::Duration};

use lambda_tools::{Context, Failure, Server, Tool, Toolkit, run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// The time limit of the tools, which is shorter than that of an invocation.
const LIMIT: Duration = Duration::from_millis(250);

/// Orders an item.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The item.
    item: u32,
}

/// The receipt.
#[derive(JsonSchema, Serialize)]
struct Receipt {
    /// The number of the effect.
    serial: u64,
    /// The item.
    item: u32,
}

/// The server's response, which says how the tool goes on.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Done(u64),
    Refused,
    Busy,
    Panic,
    Hang,
}

async fn order(input: Order, _: Context) -> Result<Receipt, Failure> {
    let item = input.item;
    match effect(item).await? {
        Reply::Done(serial) => Ok(Receipt { serial, item }),
        Reply::Refused => Err(Failure::new("The order was refused")),
        Reply::Busy => Err(Failure::new("The shop is busy").retry()),
        Reply::Panic => panic!("on request"),
        Reply::Hang => pending().await,
    }
}

/// Asks for the effect, with the number of this process.
async fn effect(item: u32) -> Result<Reply, Failure> {
    let mut stream = TcpStream::connect(env::var("EFFECTS")?).await?;
    stream.set_nodelay(true)?;
    let line = format!("{} {item}\n", env::var("AWS_ACCESS_KEY_ID")?);
    stream.write_all(line.as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await?;
    Ok(serde_json::from_str(&line)?)
}

fn main() -> Result<(), lambda_tools::Error> {
    let tool = |id| Tool::new(id, order).timeout(LIMIT);
    run(Server::new(Toolkit::new([
        tool("Order.Place@1.0.0"),
        tool("Order.Once@1.0.0").run_at_most_once(),
        tool("Order.Later@1.0.0").background(),
        tool("Order.LaterOnce@1.0.0")
            .background()
            .run_at_most_once(),
    ])?))
}
