//! The command `lambda-tools`: the features of `lambda_tools` for a terminal.
//!
//! Its executable is also the program of a function that `lambda-tools zip` packs.

mod api;
mod args;
mod check;
mod openapi;
mod output;
mod overlay;
mod parse;
mod serve;
mod source;
mod summary;
mod zip;

use std::{env, process::ExitCode};

use clap::Parser;

use args::{Arguments, Command};

/// An error message for the terminal.
pub(crate) type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    // Lambda starts the program of a function without arguments.
    let is_function = env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() && env::args_os().len() == 1;
    let result = if is_function {
        serve::on_lambda()
    } else {
        match Arguments::parse().command {
            Command::Serve(options) => serve::run(&options),
            Command::Openapi(options) => openapi::run(&options),
            Command::Zip(options) => zip::run(&options),
            Command::Check(server) => check::run(server),
        }
    };
    result.unwrap_or_else(|error| {
        // An error may be a list of several.
        format!("error: {error}").lines().for_each(output::say);
        ExitCode::FAILURE
    })
}
