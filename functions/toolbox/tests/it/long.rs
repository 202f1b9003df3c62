//! Tests that take too long for every change, run programs of others, or need what `tests/build`
//! builds besides the toolbox. `.ci/long` installs what they need, and runs them.

mod artifacts;
mod claude_code;
#[cfg(target_os = "linux")]
mod containers;
mod explorer;
mod pages_on_aws;
