//! The command `lambda-tools`: the features of `lambda_tools` for a terminal.
//!
//! It reads YAML and Overlays and fetches documents, so that deployed programs have no code for that.

mod args;
mod openapi;
mod output;
mod overlay;
mod parse;
mod project;
mod source;
mod summary;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};

/// An error message for the terminal.
pub(crate) type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let Command::Openapi(options) = Arguments::parse().command;
    openapi::run(&options).unwrap_or_else(|error| {
        // An error may be a list of several.
        format!("error: {error}").lines().for_each(output::say);
        ExitCode::FAILURE
    })
}
