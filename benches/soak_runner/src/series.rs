//! The measurements of a run, second by second, and its limits.

use std::time::Duration;

use crate::{process::Resources, recorder::Latencies};

/// The largest growth of the memory after the warm-up, in bytes.
pub(crate) const GROWTH: u64 = 1 << 20;
/// The largest growth of the median of a minute, in bytes, which single seconds do not affect.
pub(crate) const MEDIAN_GROWTH: u64 = 1 << 19;
/// The number of descriptors by which connections that are opened again may exceed those of the
/// warm-up: the old and the new one to the store, and to the issuer.
pub(crate) const RECONNECTS: u64 = 4;
/// The number of threads by which those that look up addresses may exceed those of the warm-up. They
/// end after ten seconds; how many exist depends on when a blocked thread is replaced.
pub(crate) const LOOKUPS: u64 = 2;
const MINUTE: Duration = Duration::from_mins(1);

/// The measurements of one second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// The time since the run began.
    pub(crate) at: Duration,
    pub(crate) resources: Resources,
    /// The number of requests so far.
    pub(crate) requests: u64,
    /// The number of wrong answers so far.
    pub(crate) wrong: u64,
    /// The times of the requests of this second.
    pub(crate) latencies: Latencies,
    /// True if the store fails.
    pub(crate) store_fails: bool,
}

/// The largest value of a resource during the warm-up and after it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extremes {
    pub(crate) warm_up: u64,
    pub(crate) after: u64,
}

/// The growth of the memory after the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    /// The value at the end of the warm-up.
    pub(crate) base: u64,
    /// The largest value after it.
    pub(crate) peak: u64,
    /// The value at the end of the run.
    pub(crate) last: u64,
}

impl Growth {
    pub(crate) fn bytes(self) -> u64 {
        self.peak.saturating_sub(self.base)
    }
}

/// One of the resources.
type Value = fn(&Resources) -> u64;

/// All measurements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    pub(crate) samples: Vec<Sample>,
    pub(crate) warm_up: Duration,
    /// True if the samples include what calls in progress need.
    pub(crate) includes_calls: bool,
}

impl Series {
    /// The number of samples during the warm-up.
    fn warm_up_end(&self) -> usize {
        self.samples
            .partition_point(|sample| sample.at <= self.warm_up)
    }

    fn extremes(&self, value: Value) -> Extremes {
        let (warm_up, after) = self.samples.split_at(self.warm_up_end());
        let max = |samples: &[Sample]| {
            let values = samples.iter().map(|sample| value(&sample.resources));
            values.max().unwrap_or_default()
        };
        Extremes {
            warm_up: max(warm_up),
            after: max(after),
        }
    }

    pub(crate) fn descriptors(&self) -> Extremes {
        self.extremes(|it| it.descriptors)
    }

    pub(crate) fn threads(&self) -> Extremes {
        self.extremes(|it| it.threads)
    }

    pub(crate) fn growth(&self, value: Value) -> Growth {
        let (warm_up, after) = self.samples.split_at(self.warm_up_end());
        let of = |sample: Option<&Sample>| sample.map_or(0, |it| value(&it.resources));
        Growth {
            base: of(warm_up.last()),
            peak: after
                .iter()
                .map(|it| value(&it.resources))
                .max()
                .unwrap_or(0),
            last: of(after.last()),
        }
    }

    /// The growth of the medians of all minutes after the last one of the warm-up.
    pub(crate) fn median_growth(&self, value: Value) -> Growth {
        let (warm_up, after) = self.samples.split_at(self.warm_up_end());
        let begin = self.warm_up.saturating_sub(MINUTE);
        let last = warm_up.partition_point(|sample| sample.at <= begin);
        let median = |samples: &[Sample]| {
            let mut values: Vec<_> = samples.iter().map(|it| value(&it.resources)).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        let minute =
            |sample: &Sample| sample.at.saturating_sub(self.warm_up).as_secs() / MINUTE.as_secs();
        let medians = after.chunk_by(|a, b| minute(a) == minute(b)).map(median);
        let medians: Vec<_> = medians.collect();
        Growth {
            base: median(&warm_up[last..]),
            peak: medians.iter().copied().max().unwrap_or_default(),
            last: medians.last().copied().unwrap_or_default(),
        }
    }

    /// The limits that are exceeded.
    pub(crate) fn exceeded(&self) -> Vec<String> {
        let mut exceeded = Vec::new();
        let memory: [(&str, Value); 2] = [
            ("resident memory", |it| it.resident),
            ("anonymous memory", |it| it.anonymous),
        ];
        for (name, value) in memory {
            let growth = self.growth(value).bytes();
            if growth > GROWTH && !self.includes_calls {
                exceeded.push(format!(
                    "the {name} grew by {growth} bytes after the warm-up"
                ));
            }
            let growth = self.median_growth(value).bytes();
            if growth > MEDIAN_GROWTH {
                exceeded.push(format!("the median of the {name} grew by {growth} bytes"));
            }
        }
        let counts = [
            ("descriptors", self.descriptors(), RECONNECTS),
            ("threads", self.threads(), LOOKUPS),
        ];
        for (name, Extremes { warm_up, after }, allowed) in counts {
            if after > warm_up + allowed {
                exceeded.push(format!(
                    "{after} {name}, after at most {warm_up} during the warm-up"
                ));
            }
        }
        exceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds with these values, of which the first five are the warm-up.
    fn series(values: [(u64, u64, u64); 10]) -> Series {
        let samples = values
            .iter()
            .zip(1..)
            .map(|((anonymous, descriptors, threads), at)| {
                let resources = Resources {
                    resident: anonymous + (10 << 20),
                    anonymous: *anonymous,
                    descriptors: *descriptors,
                    threads: *threads,
                    cpu: Duration::ZERO,
                };
                Sample {
                    at: Duration::from_secs(at),
                    resources,
                    requests: 0,
                    wrong: 0,
                    latencies: Latencies::default(),
                    store_fails: false,
                }
            });
        Series {
            samples: samples.collect(),
            warm_up: Duration::from_secs(5),
            includes_calls: false,
        }
    }

    #[test]
    fn a_flat_run_exceeds_nothing() {
        let mut values = [(5 << 20, 9, 3); 10];
        // Whatever happens during the warm-up, and one megabyte after it.
        values[2] = (50 << 20, 12, 4);
        values[8] = (6 << 20, 16, 6);
        assert_eq!(series(values).exceeded(), Vec::<String>::new());
    }

    #[test]
    fn growth_after_the_warm_up_exceeds_the_limit() {
        let flat = (5 << 20, 9, 3);
        for (last, count) in [
            // Of both kinds of memory.
            (((6 << 20) + 1, 9, 3), 2),
            ((5 << 20, 14, 3), 1),
            ((5 << 20, 9, 6), 1),
        ] {
            let mut values = [flat; 10];
            values[6] = last;
            assert_eq!(series(values).exceeded().len(), count, "{last:?}");
        }
    }

    #[test]
    fn steady_growth_exceeds_the_limit_of_the_median() {
        let mut values = [(5 << 20, 9, 3); 10];
        values[5..].fill(((5 << 20) + MEDIAN_GROWTH, 9, 3));
        assert_eq!(series(values).exceeded(), Vec::<String>::new());
        values[5..].fill(((5 << 20) + MEDIAN_GROWTH + 1, 9, 3));
        assert_eq!(series(values).exceeded().len(), 2);
    }
}
