//! A load on a deployed function for an hour: `benches/soak`.
//!
//! 64 clients send every kind of request in every protocol, and know what they must get. The runtime
//! API hands out one event at a time, as Lambda does; the issuer of the access tokens changes its
//! keys, and the table fails for one minute in each ten. Memory, descriptors, threads and wrong
//! answers have limits.

mod answer;
mod client;
mod event;
mod issuer;
mod local;
mod options;
mod plot;
mod process;
mod protocol;
mod recorder;
mod report;
mod run;
mod runtime_api;
mod series;
mod server;
mod store;

use std::process::ExitCode;

use options::Options;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let result = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => run::run(&options).await,
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}
