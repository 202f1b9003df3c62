//! The function as a command.

use std::process::Command;

use lambda_tools::{Auth, EventKind, Server, Tool, idempotency::Idempotency, secrets::Secrets};

pub(crate) use test_support::{Running, built, installed, isolated, repository};

/// Returns the function, without inherited variables that could change its behaviour: the deployed
/// binary if `tests/all` has built it, otherwise the tests' binary, which has another profile.
pub(crate) fn toolbox() -> Command {
    let is_deployed_built = std::env::var_os("TEST_DEPLOYED_BINARIES").is_some();
    isolated(if is_deployed_built {
        Command::new(built("sam/Toolbox/bootstrap"))
    } else {
        Command::new(env!("CARGO_BIN_EXE_toolbox"))
    })
}

/// Returns the function of Figma's tools, selected like [`toolbox`].
pub(crate) fn figma() -> Command {
    let is_deployed_built = std::env::var_os("TEST_DEPLOYED_BINARIES").is_some();
    isolated(Command::new(built(if is_deployed_built {
        "lambda/figma/bootstrap"
    } else {
        "debug/figma"
    })))
}

/// Returns the function of faulty tools, selected like [`toolbox`].
pub(crate) fn faults() -> Command {
    let is_deployed_built = std::env::var_os("TEST_DEPLOYED_BINARIES").is_some();
    isolated(Command::new(built(if is_deployed_built {
        "sam-faults/Faults/bootstrap"
    } else {
        "debug/faults"
    })))
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
