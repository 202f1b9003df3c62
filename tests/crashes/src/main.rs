//! `crashes RUNS [SEED]`: kills the function in many ways, and checks each history.
//!
//! The function is the program `crashes_function` next to this one. Prints the history of each run
//! that broke a promise; `crashes 1 SEED` repeats one, and prints its history in any case.

use std::{
    env,
    process::ExitCode,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use crashes::campaign::Campaign;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(runs)), seed) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: crashes RUNS [SEED]");
        return ExitCode::from(2);
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seed = seed.and_then(Result::ok).unwrap_or(now.as_secs());
    let function = env::current_exe()
        .unwrap()
        .with_file_name("crashes_function");
    println!("{runs} runs from seed {seed} of {}", function.display());
    let begun = Instant::now();
    let campaign = Campaign {
        function,
        seed,
        runs,
        threads: 1,
        concurrency: 48,
    };
    let summary = campaign.run();
    if let Some((plan, history)) = &summary.only {
        println!("{plan:#?}\n{history}");
    }
    println!("{summary}{:.1} seconds", begun.elapsed().as_secs_f64());
    if summary.broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
