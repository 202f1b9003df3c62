//! The measurements: cold starts, first calls, warm calls, processor time, memory.

use std::{error::Error, time::Duration};

use crate::{
    contestants::{Contestant, Id},
    function::Function,
    runtime_api::Reply,
};

/// The turns in which each contestant starts once.
const COLD_TURNS: usize = 400;
/// The sessions, in each of which each contestant has one process: the places of code and data in
/// memory, which the kernel chooses, change the time of a call by several percent.
const SESSIONS: usize = 12;
/// The turns of a session. The first one only warms up.
const WARM_TURNS: usize = 21;
const CALLS_PER_TURN: u16 = 200;

/// A measure; times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measure {
    ColdStart,
    FirstCall,
    /// Both, added for each process: the caller of a cold function waits for both.
    Both,
    /// The median of a turn.
    WarmCall,
    /// A turn, divided by its calls.
    PerCall,
    /// The processor time of all threads, divided by the calls of a turn.
    Cpu,
    /// The peak resident memory in megabytes, after all turns of a session.
    Memory,
}

/// The values of one contestant, for each measure and turn.
#[derive(Clone, Default)]
struct Values([Vec<f64>; 7]);

impl Values {
    fn push(&mut self, measure: Measure, value: f64) {
        self.0[measure as usize].push(value);
    }
}

/// The values of all contestants.
pub(crate) struct Figures(Vec<Values>);

impl Figures {
    fn of(&self, id: usize, measure: Measure) -> &[f64] {
        &self.0[id].0[measure as usize]
    }

    /// Returns the median of all turns.
    pub(crate) fn median(&self, id: usize, measure: Measure) -> f64 {
        median(self.of(id, measure).to_vec())
    }

    /// Returns the ratio to another contestant: the median of those within a turn, or for starts,
    /// that of the fast ones.
    pub(crate) fn ratio(&self, measure: Measure, one: Id, other: Id) -> f64 {
        let [one, other] = [one, other].map(|id| self.of(id as usize, measure));
        if matches!(measure, Measure::Both) {
            // Any other process delays a start; nothing makes one faster.
            return quantile(one.to_vec(), 10) / quantile(other.to_vec(), 10);
        }
        let pairs = one.iter().zip(other);
        median(pairs.map(|(one, other)| one / other).collect())
    }
}

fn median(values: Vec<f64>) -> f64 {
    quantile(values, 50)
}

fn quantile(mut values: Vec<f64>, percent: usize) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() * percent / 100]
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Fails if a response is wrong: the time of a contestant that does not work means nothing.
fn check(replies: &[Reply], expected: &str) -> Result<(), Box<dyn Error>> {
    for reply in replies {
        let text = String::from_utf8_lossy(&reply.body);
        if reply.is_error || !text.contains(expected) {
            return Err(format!("wrong response: {text:.600}").into());
        }
    }
    Ok(())
}

pub(crate) fn measure(contestants: &[Contestant]) -> Result<Figures, Box<dyn Error>> {
    let mut all = vec![Values::default(); contestants.len()];
    for _ in 0..COLD_TURNS {
        for (contestant, values) in contestants.iter().zip(&mut all) {
            let function = Function::start(&contestant.program)?;
            let (replies, _) = function.run(std::slice::from_ref(&contestant.event));
            check(&replies, contestant.expected)?;
            let [cold, first] = [function.cold_start, replies[0].latency].map(microseconds);
            values.push(Measure::ColdStart, cold);
            values.push(Measure::FirstCall, first);
            values.push(Measure::Both, cold + first);
        }
    }
    eprintln!("cold starts: done");
    for session in 1..=SESSIONS {
        let functions = contestants.iter().map(|it| Function::start(&it.program));
        let functions: Vec<_> = functions.collect::<Result<_, _>>()?;
        for turn in 0..WARM_TURNS {
            for ((contestant, function), values) in contestants.iter().zip(&functions).zip(&mut all)
            {
                let measured = warm(contestant, function)?;
                for (measure, value) in measured.into_iter().filter(|_| turn > 0) {
                    values.push(measure, value);
                }
            }
        }
        for (function, values) in functions.iter().zip(&mut all) {
            values.push(Measure::Memory, function.peak_memory()?);
        }
        eprintln!("warm calls: session {session} of {SESSIONS}");
    }
    Ok(Figures(all))
}

/// Returns the values of one turn.
fn warm(
    contestant: &Contestant,
    function: &Function,
) -> Result<[(Measure, f64); 3], Box<dyn Error>> {
    let events = vec![contestant.event.clone(); usize::from(CALLS_PER_TURN)];
    let before = function.cpu()?;
    let (replies, elapsed) = function.run(&events);
    let cpu = function.cpu()?.saturating_sub(before);
    check(&replies, contestant.expected)?;
    let latencies = replies.iter().map(|reply| microseconds(reply.latency));
    let per_call = |time| microseconds(time) / f64::from(CALLS_PER_TURN);
    Ok([
        (Measure::WarmCall, median(latencies.collect())),
        (Measure::PerCall, per_call(elapsed)),
        (Measure::Cpu, per_call(cpu)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contestants_are_compared_within_a_turn() {
        let values = |measure, times: &[f64]| {
            let mut values = Values::default();
            for time in times {
                values.push(measure, *time);
            }
            values
        };
        let compared = |measure, bare: &[f64], ours: &[f64]| {
            let figures = Figures(vec![values(measure, bare), values(measure, ours)]);
            figures.ratio(measure, Id::Oxp, Id::Bare)
        };
        // The machine becomes slower; the third turn is disturbed.
        let ratio = compared(Measure::Cpu, &[10.0, 20.0, 40.0], &[11.0, 22.0, 90.0]);
        assert!((ratio - 1.1).abs() < 1e-9, "{ratio}");
        let ratio = compared(Measure::Both, &[10.0, 30.0, 40.0], &[90.0, 70.0, 20.0]);
        assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
    }
}
