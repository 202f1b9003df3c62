//! Faulty tools: they panic, block and never end.
//!
//! Built and started like a deployed function, so that the guarantees about faults are tested with
//! the profile, the features and the linker of production.

mod long;
mod samples;

use std::{env, thread, time::Duration};

use lambda_tools::{Context, Failure, Server, Tool, Toolkit, run};
use schemars::JsonSchema;
use serde::Deserialize;

/// Does something that a tool should not do.
#[derive(Deserialize, JsonSchema)]
struct Fault {
    /// The kind of fault.
    kind: Kind,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Panics.
    Panic,
    /// Blocks its thread.
    Block,
    /// Never returns.
    Hang,
    /// Does nothing wrong.
    Nothing,
}

async fn fault(input: Fault) -> Result<String, Failure> {
    match input.kind {
        Kind::Panic => panic!("on request"),
        Kind::Block => thread::sleep(Duration::from_secs(3)),
        Kind::Hang => std::future::pending().await,
        Kind::Nothing => {}
    }
    Ok("done".into())
}

/// Says whose mail it is.
#[derive(Deserialize, JsonSchema)]
struct Mail {}

async fn whose(_: Mail, cx: Context) -> Result<String, Failure> {
    Ok(cx.user_id().unwrap_or_default().to_owned())
}

fn main() -> Result<(), lambda_tools::Error> {
    let limit = Duration::from_millis(500);
    let mut tools = samples::tools();
    tools.extend([
        Tool::new("Fault.Do@1.0.0", fault)
            .secret("KEY")
            .timeout(limit),
        Tool::new("Mail.Whose@1.0.0", whose).user_id(),
        Tool::new("Mail.Send@1.0.0", whose)
            .user_id()
            .scope("mail.send"),
    ]);
    // Not among the others, whose list is what the tests of the explorer expect.
    if env::var_os("LONG_TOOLS").is_some() {
        tools.extend(long::tools());
    }
    run(Server::new(Toolkit::new(tools)?).serve_openapi(true))
}
