//! The function as a program.

use std::process::Command;

pub(crate) use test_support::{Running, built, installed, isolated, repository};

/// The function, with nothing in its environment that could lead it elsewhere: as it is deployed
/// where `tests/all` has built that, else as tests compile it, which differs in profile.
pub(crate) fn toolbox() -> Command {
    let is_built = std::env::var_os("TESTS_WHAT_IS_DEPLOYED").is_some();
    isolated(if is_built {
        Command::new(built("sam/Toolbox/bootstrap"))
    } else {
        Command::new(env!("CARGO_BIN_EXE_toolbox"))
    })
}
