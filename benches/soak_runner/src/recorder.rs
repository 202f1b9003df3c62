//! A record of the responses that the clients got.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

/// The number of wrong answers whose details are kept.
const DETAILS: usize = 50;

/// The requests of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) requests: u64,
    /// The errors that are right while the store fails.
    pub(crate) store_errors: u64,
    pub(crate) wrong: u64,
}

/// The responses that the clients have got so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) kinds: BTreeMap<&'static str, Count>,
    pub(crate) requests: u64,
    pub(crate) wrong: u64,
    /// The details of the first wrong answers.
    pub(crate) details: Vec<String>,
}

#[derive(Default)]
struct State {
    totals: Totals,
    /// The latencies since the last look, in microseconds.
    recent: Vec<u32>,
    /// All latencies, in microseconds.
    latencies: Vec<u32>,
    /// The runs of the tools with an effect, as bits.
    runs: Vec<u64>,
}

/// Shared by all clients.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<State>);

/// The 50th and the 99th percentile, and the maximum, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) p50: u32,
    pub(crate) p99: u32,
    pub(crate) max: u32,
}

impl Latencies {
    fn of(mut times: Vec<u32>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
            times.get(index).copied().unwrap_or_default()
        };
        Self {
            p50: at(50),
            p99: at(99),
            max: times.last().copied().unwrap_or_default(),
        }
    }
}

impl Recorder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no thread panics while it holds this")
    }

    /// Counts an answer, and the time that the function took for it.
    pub(crate) fn answered(&self, kind: &'static str, latency: Duration, is_store_error: bool) {
        let micros = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        let mut state = self.state();
        state.recent.push(micros);
        state.latencies.push(micros);
        state.totals.requests += 1;
        let count = state.totals.kinds.entry(kind).or_default();
        count.requests += 1;
        count.store_errors += u64::from(is_store_error);
    }

    /// Counts a wrong answer, or a missing one.
    pub(crate) fn wrong(&self, kind: &'static str, detail: &str) {
        let mut state = self.state();
        state.totals.wrong += 1;
        state.totals.kinds.entry(kind).or_default().wrong += 1;
        if state.totals.details.len() < DETAILS {
            let detail = format!("{kind}: {detail}");
            eprintln!("wrong answer: {detail}");
            state.totals.details.push(detail);
        }
    }

    /// Remembers a run; false if another call has had it.
    pub(crate) fn is_new_run(&self, run: u64) -> bool {
        let Ok(index) = usize::try_from(run / 64) else {
            return false;
        };
        // Runs are counted: a much larger number is none.
        if index > 1 << 20 {
            return false;
        }
        let mut state = self.state();
        if state.runs.len() <= index {
            state.runs.resize(index + 1, 0);
        }
        let bit = 1 << (run % 64);
        let is_new = state.runs[index] & bit == 0;
        state.runs[index] |= bit;
        is_new
    }

    pub(crate) fn totals(&self) -> Totals {
        self.state().totals.clone()
    }

    /// The latencies since the last look.
    pub(crate) fn recent(&self) -> Latencies {
        let recent = mem::take(&mut self.state().recent);
        Latencies::of(recent)
    }

    /// All latencies.
    pub(crate) fn latencies(&self) -> Latencies {
        let latencies = self.state().latencies.clone();
        Latencies::of(latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_new_once() {
        let recorder = Recorder::default();
        let runs = [0, 64, 63, 64, 0, 1, u64::MAX];
        let is_new = runs.map(|run| recorder.is_new_run(run));
        assert_eq!(is_new, [true, true, true, false, false, true, false]);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let latencies = Latencies::of((1..=200).rev().collect());
        assert_eq!((latencies.p50, latencies.p99), (101, 199));
        assert_eq!(latencies.max, 200);
        assert_eq!(Latencies::of(Vec::new()).p99, 0);
    }
}
