//! The function as a command.

use std::process::Command;

pub(crate) use test_support::{Running, built, installed, isolated, repository};

/// The function, without inherited variables that could change its behaviour: the deployed binary
/// if `tests/all` has built it, otherwise the tests' binary, which has another profile.
pub(crate) fn toolbox() -> Command {
    let is_deployed_built = std::env::var_os("TEST_DEPLOYED_BINARIES").is_some();
    isolated(if is_deployed_built {
        Command::new(built("sam/Toolbox/bootstrap"))
    } else {
        Command::new(env!("CARGO_BIN_EXE_toolbox"))
    })
}
