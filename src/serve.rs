//! Running the server: on Lambda, or as a local HTTP server.
//!
//! This module selects the real clock and applies the settings in the environment.

mod lambda;
mod local;
pub(crate) mod settings;
mod shutdown;

use std::{
    env,
    io::{self, Write},
};

use axum::Router;
use serde_json::Value;

use crate::{
    Error, Server, assemble::assemble, clock::REAL, observe::confidential, tool::agentcore,
};
use settings::InvalidSetting;

const HELP: &str = "\
Serves tools: on AWS Lambda, or else over HTTP. Settings are environment variables.

--tools-for agentcore  prints the list of tools for an AgentCore Gateway
--version              prints the title and the version
--help                 prints this text";

/// Serves tools: as a Lambda function if `AWS_LAMBDA_RUNTIME_API` is set, else over HTTP on
/// 127.0.0.1:9000 until Ctrl-C or SIGTERM.
///
/// The environment sets what the program does not: [`environment`](crate::environment) lists the
/// variables. Initialization reads all declared secrets, unless they come from the
/// environment, and connects to the table of calls; a failure is logged, and the calls that need
/// the secret or the table try again.
///
/// [`production`](crate::production) lists all logs, metrics and traces.
///
/// A panic in a tool is logged without the call's secrets. The program's own panic hook still
/// handles all other panics, except those whose text contains a known secret.
///
/// A subscriber for [`tracing`] is installed unless there is one already.
///
/// A program that is started with `--tools-for agentcore` prints the list of its tools for an
/// [`AgentCore` Gateway](crate::agentcore), and ends. So it does with `--help` and `--version`; all
/// other arguments are the program's own.
///
/// # Errors
/// Fails if a definition has a mistake (see [`Toolkit::check`](crate::Toolkit::check); not on
/// Lambda), if a setting is invalid or missing (on Lambda, and at an address that other machines can
/// reach), if the [version](crate::ServerInfo::new) is invalid, if the server cannot listen on its
/// address, or if the runtime API fails.
pub async fn serve(server: impl Into<Server>) -> Result<(), Error> {
    match ready(server.into(), true)? {
        Some(server) => serve_requests(server).await,
        None => Ok(()),
    }
}

/// Completes a server, unless the program's arguments ask for something else.
fn ready(mut server: Server, may_have_own: bool) -> Result<Option<Server>, Error> {
    if print_requested(&server, may_have_own)? {
        return Ok(None);
    }
    settings::apply(&mut server)?;
    confidential::log_panics();
    Ok(Some(server))
}

async fn serve_requests(server: Server) -> Result<(), Error> {
    if settings::is_on_lambda() {
        lambda::run(server).await
    } else {
        local::run(server).await
    }
}

/// [Serves](serve) tools, on a tokio runtime that it creates: for a `main` that is not async. Unknown
/// arguments of the program are an error.
///
/// On Lambda, events, responses and tools share one thread, because a second one would be woken and
/// put to sleep for each event. An async tool must not block it: until the tool returns, not even
/// its time limit ends the call. The log then names the tool, whose function should not be async
/// ([`Tool::new`](crate::Tool::new)). Locally, there are several threads.
///
/// `tokio::task::block_in_place` panics on Lambda, although it works locally.
///
/// ```no_run
/// use lambda_tools::{Error, Toolkit, run};
///
/// fn main() -> Result<(), Error> {
///     run(Toolkit::new([])?)
/// }
/// ```
///
/// On Lambda, the variable `_X_AMZN_TRACE_ID` is not set for each event, so AWS's SDKs pass on no
/// trace.
///
/// # Errors
/// Those of [`serve`], and the runtime's, if it cannot start.
pub fn run(server: impl Into<Server>) -> Result<(), Error> {
    ready(server.into(), false)?.map_or(Ok(()), run_here)
}

fn run_here(server: Server) -> Result<(), Error> {
    if settings::is_on_lambda() {
        return lambda::run_on_one_thread(server);
    }
    run_locally(server)
}

/// Not inlined: a function on Lambda would touch the pages of this one's stack.
#[inline(never)]
fn run_locally(server: Server) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(serve_requests(server));
    // Does not wait for functions that are not async.
    runtime.shutdown_background();
    result
}

/// Prints what the program's arguments ask for instead of a server. Returns false if they ask for
/// nothing. Unknown ones are errors, unless the program may have arguments of its own.
fn print_requested(server: &Server, may_have_own: bool) -> Result<bool, Error> {
    let arguments = env::args_os().skip(1);
    let arguments = arguments.map(|it| it.to_string_lossy().into_owned());
    let arguments: Vec<_> = arguments.collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let text = match arguments[..] {
        ["--tools-for", "agentcore", ..] => {
            format!("{:#}", Value::from(agentcore::definitions(&server.toolkit)))
        }
        ["--tools-for", ..] => return Err("--tools-for must be agentcore.".into()),
        ["--help" | "-h", ..] => HELP.to_owned(),
        ["--version" | "-V", ..] => {
            format!("{} {}", server.info.title, server.info.version)
        }
        [_, ..] if !may_have_own => {
            let text = format!("the program has no such argument\n\n{HELP}");
            return Err(InvalidSetting(text).into());
        }
        _ => return Ok(false),
    };
    // Unlike `println!`, this does not panic if nobody reads it.
    writeln!(io::stdout(), "{text}")?;
    Ok(true)
}

impl Server {
    /// Returns the whole HTTP interface as one tower service, for your own HTTP server. The
    /// environment sets what the program does not, as for [`serve`](crate::serve). Before the first
    /// call, the router reads no secret and connects to no table. The panic hook is not set.
    ///
    /// # Errors
    /// Fails if a setting is invalid or, on Lambda, missing, or if the
    /// [version](crate::ServerInfo::new) is invalid.
    pub fn into_router(mut self) -> Result<Router, Error> {
        settings::apply(&mut self)?;
        Ok(assemble(self, REAL, REAL).0)
    }
}

#[cfg(test)]
mod tests;
