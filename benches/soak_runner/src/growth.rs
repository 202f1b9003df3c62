//! The growth of the functions' resources, and its limits.

/// The resources of a process, in the order of [`NAMES`].
pub(crate) type Resources = [u64; 4];

pub(crate) const NAMES: [&str; 4] = [
    "resident memory in KiB",
    "anonymous memory in KiB",
    "descriptors",
    "threads",
];
/// By how much each resource may exceed its value after the warm-up: half a megabyte; the old and the
/// new connection to the store, and to the issuer; threads that look up addresses.
const LIMITS: Resources = [512, 512, 4, 2];
/// The functions, in the order of their measurements.
pub(crate) const FUNCTIONS: [&str; 2] = ["toolbox", "faults"];
/// The parts of a run, of which the first two are the warm-up: the second one is the base.
const PARTS: usize = 12;

/// One of the resources of a function.
pub(crate) struct Growth {
    pub(crate) name: String,
    /// The median of the last part of the warm-up.
    pub(crate) base: u64,
    /// The largest median of a later part.
    pub(crate) peak: u64,
    pub(crate) limit: u64,
}

impl Growth {
    pub(crate) fn amount(&self) -> u64 {
        self.peak.saturating_sub(self.base)
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.amount() > self.limit
    }
}

/// Returns the growth of all resources, which were measured every second.
pub(crate) fn growths(seconds: &[[Resources; 2]]) -> Vec<Growth> {
    let length = seconds.len().div_ceil(PARTS).max(1);
    let growth = |function: usize, resource: usize| {
        let median = |part: &[[Resources; 2]]| {
            let mut values: Vec<_> = part.iter().map(|it| it[function][resource]).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        let mut medians = seconds.chunks(length).skip(1).map(median);
        Growth {
            name: format!("{}: {}", FUNCTIONS[function], NAMES[resource]),
            base: medians.next().unwrap_or_default(),
            peak: medians.max().unwrap_or(u64::MAX),
            limit: LIMITS[resource],
        }
    };
    let functions = 0..FUNCTIONS.len();
    let all = functions.flat_map(|function| (0..NAMES.len()).map(move |it| (function, it)));
    all.map(|(function, resource)| growth(function, resource))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the resources that exceed their limits in an hour with this memory in each second.
    fn exceeded(memory: impl Fn(u64) -> u64) -> Vec<String> {
        let second = |it| [[0; 4], [10_000 + memory(it), memory(it), 9, 3]];
        let growths = growths(&(0..3600).map(second).collect::<Vec<_>>());
        let exceeded = growths.into_iter().filter(Growth::is_exceeded);
        exceeded.map(|it| it.name).collect()
    }

    #[test]
    fn a_flat_memory_exceeds_nothing() {
        // Whatever happens in the first five minutes, and in single seconds.
        let is_peak = |second: u64| second < 300 || second.is_multiple_of(60);
        let none = exceeded(|it| if is_peak(it) { 50_000 } else { 5_000 });
        assert_eq!(none, Vec::<String>::new());
    }

    #[test]
    fn a_leak_of_a_hundred_bytes_for_each_call_is_found() {
        let both = NAMES[..2].iter().map(|it| format!("faults: {it}"));
        let both: Vec<_> = both.collect();
        assert_eq!(exceeded(|second| second * 125 * 100 / 1024), both);
        // Two bytes for each call are the limit.
        assert_eq!(exceeded(|second| second * 250 / 1024), both);
        assert_eq!(exceeded(|second| second * 125 / 1024), Vec::<String>::new());
    }
}
