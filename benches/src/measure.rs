//! The comparison: cold starts, first calls, warm calls, processor time, memory.

use std::{error::Error, time::Duration};

use crate::{
    contestants::{Contestant, Id},
    function::Function,
    runtime_api::Reply,
    spread::{Spread, StartSpreads, Starts},
};

const COLD_ROUNDS: usize = 50;
const WARM_ROUNDS: usize = 10;
const CALLS_PER_ROUND: usize = 500;

/// The results of one contestant.
pub(crate) struct Row {
    pub(crate) id: Id,
    pub(crate) name: &'static str,
    pub(crate) starts: StartSpreads,
    pub(crate) warm: Spread,
    pub(crate) cpu_per_call: Spread,
    pub(crate) calls_per_second: f64,
    pub(crate) peak_memory: u64,
}

/// Fails if a response is wrong: the time of a contestant that does not work means nothing.
pub(crate) fn check(replies: &[Reply], expected: &str) -> Result<(), Box<dyn Error>> {
    for reply in replies {
        let text = String::from_utf8_lossy(&reply.body);
        if reply.is_error || !text.contains(expected) {
            let beginning: String = text.chars().take(600).collect();
            return Err(format!("wrong response: {beginning}").into());
        }
    }
    Ok(())
}

pub(crate) fn measure(contestants: &[Contestant]) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut cold: Vec<_> = contestants.iter().map(|_| Starts::default()).collect();
    for round in 0..COLD_ROUNDS {
        for (contestant, starts) in contestants.iter().zip(&mut cold) {
            let function = Function::start(&contestant.start)?;
            let (replies, _) = function.run(std::slice::from_ref(&contestant.event));
            check(&replies, contestant.expected)?;
            starts.push(function.cold_start, replies[0].latency);
        }
        eprint!("\rcold starts: {} of {COLD_ROUNDS}", round + 1);
    }
    eprintln!();
    let warm = warm(contestants)?;
    let row = |((contestant, starts), warm): ((&Contestant, Starts), Warm)| Row {
        id: contestant.id,
        name: contestant.name,
        starts: starts.spreads(),
        warm: Spread::of(warm.latencies),
        cpu_per_call: Spread::of(warm.cpu),
        calls_per_second: median(warm.rates),
        peak_memory: warm.peak_memory,
    };
    Ok(contestants.iter().zip(cold).zip(warm).map(row).collect())
}

#[derive(Default)]
struct Warm {
    latencies: Vec<Duration>,
    cpu: Vec<Duration>,
    rates: Vec<f64>,
    peak_memory: u64,
}

fn warm(contestants: &[Contestant]) -> Result<Vec<Warm>, Box<dyn Error>> {
    let functions = contestants
        .iter()
        .map(|contestant| Function::start(&contestant.start));
    let functions: Vec<_> = functions.collect::<Result<_, _>>()?;
    let mut figures: Vec<_> = contestants.iter().map(|_| Warm::default()).collect();
    for round in 0..=WARM_ROUNDS {
        for ((contestant, function), figures) in
            contestants.iter().zip(&functions).zip(&mut figures)
        {
            let events = vec![contestant.event.clone(); CALLS_PER_ROUND];
            let before = function.cpu()?;
            let (replies, elapsed) = function.run(&events);
            let used = function.cpu()?.saturating_sub(before);
            check(&replies, contestant.expected)?;
            // The first round only warms up.
            if round > 0 {
                figures
                    .latencies
                    .extend(replies.iter().map(|reply| reply.latency));
                let calls = u32::try_from(CALLS_PER_ROUND)?;
                figures.cpu.push(used / calls);
                figures.rates.push(f64::from(calls) / elapsed.as_secs_f64());
            }
            figures.peak_memory = function.peak_memory()?;
        }
        eprint!("\rwarm rounds: {round} of {WARM_ROUNDS}");
    }
    eprintln!();
    Ok(figures)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
