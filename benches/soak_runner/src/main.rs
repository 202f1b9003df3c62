//! A load on two deployed functions for an hour: `benches/soak`.
//!
//! The toolbox gets the recorded events, the function of `tests/faults` gets calls in every format,
//! with credentials whose keys change and a table that fails for a tenth of the time. Each function
//! gets one event at a time, as on Lambda. Wrong answers and growing memory fail the run.

mod callers;
mod calls;
mod format;
mod function;
mod growth;
mod pairs;
mod plot;
mod report;
mod store;
mod tally;

use std::{
    error::Error,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use calls::Calls;
use pairs::Pairs;
use report::Outcome;

const USAGE: &str = "usage: soak TOOLBOX FAULTS [--minutes N] [--pace REQUESTS_PER_SECOND] \
                     [--answers-only] [--output FOLDER]";

/// The programs, and the duration and the pace of the run.
struct Options {
    toolbox: PathBuf,
    faults: PathBuf,
    minutes: f64,
    pace: f64,
    /// True for runs that are too short for a limit of the memory.
    answers_only: bool,
    /// The folder of the report.
    output: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self {
            toolbox: arguments.next()?.into(),
            faults: arguments.next()?.into(),
            minutes: 60.0,
            pace: 250.0,
            answers_only: false,
            output: None,
        };
        while let Some(name) = arguments.next() {
            match &*name {
                "--answers-only" => options.answers_only = true,
                "--minutes" => options.minutes = positive(&arguments.next()?)?,
                "--pace" => options.pace = positive(&arguments.next()?)?,
                "--output" => options.output = Some(arguments.next()?.into()),
                _ => return None,
            }
        }
        Some(options)
    }
}

fn positive(text: &str) -> Option<f64> {
    let number = text.parse().ok();
    number.filter(|it| (0.1..1e6).contains(it))
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let outcome = run(&options).await;
    match outcome.and_then(|outcome| outcome.report(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Sends requests until the end of the run, and measures the memory every second.
async fn run(options: &Options) -> Result<Outcome, Box<dyn Error>> {
    let begin = Instant::now();
    let length = Duration::from_secs_f64(options.minutes * 60.0);
    // Each turn sends a recorded event and a call.
    let interval = Duration::from_secs_f64(2.0 / options.pace);
    let mut pairs = Pairs::start(&options.toolbox).await?;
    let mut calls = Calls::start(&options.faults, begin, length / 6).await;
    calls.largest().await;
    // A slow machine takes most of a short run for these.
    let begin = Instant::now();
    let (mut turn, mut second, mut seconds) = (begin, begin, Vec::new());
    while begin.elapsed() < length {
        tokio::time::sleep_until(turn.into()).await;
        // After a break, such as a slow store, nothing is made up for.
        turn = (turn + interval).max(Instant::now());
        pairs.next().await;
        calls.next().await;
        if second.elapsed() >= Duration::from_secs(1) {
            second = Instant::now();
            let toolbox = pairs.function.measure().await?;
            seconds.push([toolbox, calls.function.measure().await?]);
            if seconds.len().is_multiple_of(60) {
                println!("minute {}: {:?}", seconds.len() / 60, seconds.last());
            }
        }
    }
    let (faults, connections) = calls.end();
    Ok(Outcome {
        functions: [pairs.function, faults],
        seconds,
        connections,
    })
}
