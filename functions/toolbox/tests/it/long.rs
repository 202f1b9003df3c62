//! Tests that take too long for every change, or run programs of others. `.ci/long` installs what
//! they need, and runs them.

pub(crate) mod claude_code;
mod explorer;
mod first_deployment;
mod guides_on_aws;
