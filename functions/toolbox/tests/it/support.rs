//! The function as a command.

use std::process::Command;

use lambda_tools::{Auth, EventKind, Server, Tool, idempotency::Idempotency, secrets::Secrets};

pub(crate) use test_support::{Running, function, installed, isolated, repository};

/// Returns the function, without inherited variables that could change its behaviour.
pub(crate) fn toolbox() -> Command {
    let is_deployed = std::env::var_os("TEST_DEPLOYED_BINARIES").is_some();
    let program = is_deployed.then(|| function("toolbox"));
    isolated(Command::new(
        program.unwrap_or_else(|| env!("CARGO_BIN_EXE_toolbox").into()),
    ))
}

/// Returns the function of faulty tools, like [`toolbox`].
pub(crate) fn faults() -> Command {
    isolated(Command::new(function("faults")))
}

/// Returns a server of these tools that takes no setting from the environment of the tests, except
/// for metrics and providers.
pub(crate) fn server(tools: Vec<Tool>) -> Server {
    toolbox::server(tools)
        .unwrap()
        .auth(Auth::none())
        .base_path("")
        .allowed_origins([""; 0])
        .events(EventKind::DEFAULT.iter().copied())
        .secrets(Secrets::none())
        .idempotency(Idempotency::none())
}
