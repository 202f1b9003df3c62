//! Running: on Lambda where there is Lambda, else as a local HTTP server.
//!
//! The only place that reads the clock, the environment and randomness, and that knows of AWS.

pub(crate) mod lambda;
mod local;
mod sample;
pub(crate) mod settings;
pub(crate) mod shutdown;

use std::env;

use crate::{Error, Server, assemble::assemble, clock::REAL, observe::panics};
use axum::Router;

/// Serves tools: as a Lambda function where `AWS_LAMBDA_RUNTIME_API` is set, else over HTTP on
/// 127.0.0.1:9000 until Ctrl-C or SIGTERM.
///
#[doc = include_str!("../docs/environment.md")]
///
/// What the program itself chooses stands; the `TOOLS_` variables fill in what it leaves open.
/// Secrets from elsewhere than the environment are read during initialisation, all that tools
/// declare, and a table for calls is connected to; what does not go well then is logged and tried
/// again by the calls that need it.
///
/// Lambda's own variables and OpenTelemetry's are in [`operations`](crate::operations), with
/// everything that is logged, measured and traced.
///
/// A panic in a tool is logged without the call's secrets; the panic hook that the program has set
/// goes on handling all others, but for those whose text has a known secret in it.
///
/// A subscriber for [`tracing`] is installed unless there is one already.
///
/// # Errors
/// Mistakes in the definitions (see [`Toolkit::check`](crate::Toolkit::check); not on Lambda), a
/// choice that is missing on Lambda or cannot be understood, a [version](crate::ServerInfo::new) that is invalid, an address that cannot be listened
/// on, a runtime API that fails.
pub async fn serve(server: impl Into<Server>) -> Result<(), Error> {
    let mut server = server.into();
    settings::apply(&mut server)?;
    panics::log();
    if env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() {
        lambda::run(server).await
    } else {
        local::run(server).await
    }
}

impl Server {
    /// The whole HTTP surface as one tower service, for a host of one's own. What the program has
    /// not chosen comes from the environment, as for [`serve`](crate::serve). Nothing is read or
    /// connected ahead of the first call, and the panic hook is not set.
    ///
    /// # Errors
    /// A choice in the environment that is none, or that is missing on Lambda; a
    /// [version](Self::about) that is none.
    pub fn into_router(mut self) -> Result<Router, Error> {
        settings::apply(&mut self)?;
        Ok(assemble(self, REAL, REAL).0)
    }
}
