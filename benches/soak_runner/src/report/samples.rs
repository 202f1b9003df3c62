//! The measurements of all seconds, for programs that analyze them.

use std::fmt::{self, Write};

use crate::series::Series;

/// All samples, as comma-separated values.
pub(super) fn table(series: &Series) -> Result<String, fmt::Error> {
    let mut table = "seconds,resident,anonymous,descriptors,threads,requests,wrong,p50_us,p99_us,\
                     max_us,cpu_ms,store_fails\n"
        .to_owned();
    for sample in &series.samples {
        let (it, times) = (sample.resources, sample.latencies);
        writeln!(
            table,
            "{:.3},{},{},{},{},{},{},{},{},{},{},{}",
            sample.at.as_secs_f64(),
            it.resident,
            it.anonymous,
            it.descriptors,
            it.threads,
            sample.requests,
            sample.wrong,
            times.p50,
            times.p99,
            times.max,
            it.cpu.as_millis(),
            u8::from(sample.store_fails),
        )?;
    }
    Ok(table)
}
