//! The distribution of many measured times.

use std::time::Duration;

#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) p10: Duration,
    pub(crate) median: Duration,
    pub(crate) p90: Duration,
    pub(crate) p99: Duration,
}

impl Spread {
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        Self {
            p10: at(10),
            median: at(50),
            p90: at(90),
            p99: at(99),
        }
    }
}

/// The cold starts and first calls of processes.
#[derive(Default)]
pub(crate) struct Starts {
    cold: Vec<Duration>,
    first: Vec<Duration>,
}

/// The distributions of cold starts, of first calls, and of the sums of both.
#[derive(Clone, Copy)]
pub(crate) struct StartSpreads {
    pub(crate) cold: Spread,
    pub(crate) first: Spread,
    /// Of the sum in each process: the sum of two medians is not the median of the sums.
    pub(crate) total: Spread,
}

impl Starts {
    /// Adds one process.
    pub(crate) fn push(&mut self, cold: Duration, first: Duration) {
        self.cold.push(cold);
        self.first.push(first);
    }

    pub(crate) fn spreads(self) -> StartSpreads {
        let totals = self.cold.iter().zip(&self.first);
        let totals = totals.map(|(cold, first)| *cold + *first).collect();
        StartSpreads {
            total: Spread::of(totals),
            cold: Spread::of(self.cold),
            first: Spread::of(self.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_is_of_one_process() {
        let ms = Duration::from_millis;
        let mut starts = Starts::default();
        for (cold, first) in [(1, 9), (2, 4), (9, 1)] {
            starts.push(ms(cold), ms(first));
        }
        let spreads = starts.spreads();
        assert_eq!(spreads.cold.median, ms(2));
        assert_eq!(spreads.first.median, ms(4));
        assert_eq!(spreads.total.median, ms(10));
    }
}
