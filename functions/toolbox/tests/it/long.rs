//! What takes too long for every change, and programs that others have written. `.ci/long` installs what
//! these tests need, and runs them.

pub(crate) mod claude_code;
mod explorer;
mod first_deployment;
mod guides_on_aws;
