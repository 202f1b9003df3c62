//! Running: on Lambda where there is Lambda, else as a local HTTP server.
//!
//! The only place that reads the clock, the environment and randomness, and that knows of AWS.

mod answer;
mod event;
mod kind;
pub(crate) mod lambda;
mod local;
mod record;
mod request;
mod sample;

use std::{
    env,
    time::{Instant, SystemTime},
};

use uuid::Uuid;

use crate::{Server, host::Host};

/// What ends [`serve`]: a taken port, a definition that is wrong, a platform that does not answer.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The clock and the randomness of the machine.
pub(crate) const REAL: Host = Host {
    wall: SystemTime::now,
    instant: Instant::now,
    id: Uuid::new_v4,
};

/// Serves tools: as a Lambda function where `AWS_LAMBDA_RUNTIME_API` is set, else over HTTP on
/// 127.0.0.1:9000 until Ctrl-C or SIGTERM.
///
/// | environment variable | meaning | default |
/// | --- | --- | --- |
/// | `HOST`, `PORT` | where the local server listens; port 0 takes a free one | `127.0.0.1`, `9000` |
/// | `ALLOWED_HOSTS` | names, comma-separated, under which a local server on a loopback address may be called besides `localhost` | |
/// | `RECORD_EVENTS` | a folder: the local server writes every request there as an event with its expected answer | |
/// | `TOOLS_BASE_PATH` | as [`Server::base_path`] | |
/// | `AWS_LAMBDA_LOG_LEVEL`, `RUST_LOG` | what is logged | `info` |
/// | `AWS_LAMBDA_LOG_FORMAT` | `JSON` for JSON lines on Lambda | text |
///
/// A subscriber for [`tracing`] is installed unless there is one already.
///
/// # Errors
/// Mistakes in the definitions (see [`Toolkit::check`](crate::Toolkit::check); not on Lambda), an
/// address that cannot be listened on, a runtime API that fails.
pub async fn serve(server: impl Into<Server>) -> Result<(), Error> {
    let mut server = server.into();
    if let Ok(path) = env::var("TOOLS_BASE_PATH") {
        server.set_base_path(path);
    }
    if env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() {
        lambda::run(server.into_router()).await
    } else {
        server.toolkit().check()?;
        local::run(server).await
    }
}
