//! The report, as Markdown, and the check of the limits.

mod machine;
mod samples;

use std::{
    error::Error,
    fmt::{self, Write},
    fs,
    path::Path,
};

use crate::{
    options::Options,
    plot,
    recorder::{Latencies, Totals},
    series::{Growth, LOOKUPS, RECONNECTS, Series},
};

/// The smallest share of the seconds that must have a sample, in percent.
const MEASURED: u64 = 80;

/// Everything that a run has found.
pub(crate) struct Outcome {
    pub(crate) options: Options,
    pub(crate) totals: Totals,
    pub(crate) latencies: Latencies,
    /// The number of responses to no event.
    pub(crate) misplaced: u64,
    /// The numbers of log lines, and of lines with a secret.
    pub(crate) lines: (u64, u64),
    /// The numbers of requests to the store, of failed ones, and of records.
    pub(crate) store: (u64, u64, usize),
    pub(crate) key_fetches: u64,
    pub(crate) has_ended: bool,
    pub(crate) series: Series,
}

impl Outcome {
    /// The limits that are not met.
    fn failures(&self) -> Vec<String> {
        let counts = [
            (self.totals.wrong, "wrong answers"),
            (self.misplaced, "responses to no event"),
            (self.lines.1, "log lines with a secret"),
            (u64::from(self.has_ended), "ended process"),
        ];
        let failures = counts.iter().filter(|(count, _)| *count > 0);
        let mut failures: Vec<_> = failures
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        if self.options.limits_resources {
            failures.extend(self.series.exceeded());
            let seconds = self.options.length.as_secs();
            let measured = self.series.samples.len() as u64;
            if measured * 100 < seconds * MEASURED {
                failures.push(format!(
                    "only {measured} of {seconds} seconds were measured"
                ));
            }
        }
        failures
    }

    /// Writes `SOAK.md` and `soak.svg` to the folder of the options, and all samples to
    /// `target/soak/soak.csv`.
    pub(crate) fn write(&self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let Some(folder) = &self.options.output else {
            return Ok(());
        };
        let target = Path::new("target/soak");
        for folder in [folder, target] {
            fs::create_dir_all(folder)?;
        }
        fs::write(target.join("soak.csv"), samples::table(&self.series)?)?;
        fs::write(folder.join("SOAK.md"), self.text()?)?;
        fs::write(folder.join("soak.svg"), plot::plot(&self.series)?)?;
        Ok(())
    }

    /// Prints the report; fails if a limit is not met.
    pub(crate) fn print(&self) -> Result<(), Box<dyn Error + Send + Sync>> {
        print!("{}", self.text()?);
        let failures = self.failures();
        if failures.is_empty() {
            return Ok(());
        }
        Err(failures.join("; ").into())
    }

    fn text(&self) -> Result<String, fmt::Error> {
        let mut text = format!("# An hour under load\n\n{}\n\n", machine::about());
        let options = &self.options;
        let form = if options.is_local {
            "as a local server"
        } else {
            "as a function"
        };
        let size = fs::metadata(&options.program).map_or(0, |file| file.len());
        writeln!(
            text,
            "Written by `benches/soak`, which [README.md](README.md#an-hour-under-load) describes: \
             a program of {size} bytes {form}, {} minutes, {} clients, at most {} requests per \
             second, warm-up {} minutes.\n",
            options.length.as_secs_f64() / 60.0,
            options.clients,
            options.pace,
            options.warm_up.as_secs_f64() / 60.0,
        )?;
        text += "![Memory, descriptors, requests and wrong answers over time](soak.svg)\n\n";
        self.limits(&mut text)?;
        self.figures(&mut text)?;
        self.kinds(&mut text)?;
        self.wrong_answers(&mut text)?;
        Ok(text)
    }

    fn limits(&self, text: &mut String) -> fmt::Result {
        text.push_str("| | measured | limit |\n| --- | --- | --- |\n");
        let count =
            |text: &mut String, name: &str, value: u64| writeln!(text, "| {name} | {value} | 0 |");
        count(text, "wrong answers", self.totals.wrong)?;
        count(text, "responses to no event", self.misplaced)?;
        count(text, "log lines with a secret", self.lines.1)?;
        count(text, "restarts of the process", u64::from(self.has_ended))?;
        if self.options.limits_resources {
            self.resources(text)?;
        }
        let failures = self.failures();
        if !failures.is_empty() {
            writeln!(text, "\n**Missed: {}.**", failures.join("; "))?;
        }
        text.push('\n');
        Ok(())
    }

    fn resources(&self, text: &mut String) -> fmt::Result {
        let series = &self.series;
        let growths = [
            ("resident memory", series.growth(|it| it.resident), "1"),
            ("anonymous memory", series.growth(|it| it.anonymous), "1"),
            (
                "resident memory, medians of minutes",
                series.median_growth(|it| it.resident),
                "0.5",
            ),
            (
                "anonymous memory, medians of minutes",
                series.median_growth(|it| it.anonymous),
                "0.5",
            ),
        ];
        // Single seconds include what calls in progress need.
        let skipped = if series.includes_calls { 2 } else { 0 };
        for (name, growth, limit) in growths.into_iter().skip(skipped) {
            writeln!(text, "| {name} | {} | +{limit} MiB |", InMegabytes(growth))?;
        }
        let extremes = [
            ("descriptors", series.descriptors(), RECONNECTS),
            ("threads", series.threads(), LOOKUPS),
        ];
        for (name, it, more) in extremes {
            let (warm_up, after) = (it.warm_up, it.after);
            writeln!(
                text,
                "| {name}, at most | {after} | {}: {warm_up} during the warm-up, + {more} |",
                warm_up + more
            )?;
        }
        Ok(())
    }

    fn figures(&self, text: &mut String) -> fmt::Result {
        let seconds = self.options.length.as_secs_f64();
        let cpu = self
            .series
            .samples
            .last()
            .map_or(0.0, |it| it.resources.cpu.as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let rate = self.totals.requests as f64 / seconds;
        let (requests, failed, records) = self.store;
        let Latencies { p50, p99, max } = self.latencies;
        writeln!(
            text,
            "- {} requests, {rate:.0} per second; the function used {:.0}% of a processor\n\
             - the function's time for a request, waits for the store included: p50 {:.2} ms, p99 \
             {:.2} ms, at most {:.0} ms\n\
             - {requests} requests to the store, of which {failed} failed; {records} records at the \
             end\n\
             - {} fetches of the issuer's keys; {} log lines\n",
            self.totals.requests,
            100.0 * cpu / seconds,
            f64::from(p50) / 1000.0,
            f64::from(p99) / 1000.0,
            f64::from(max) / 1000.0,
            self.key_fetches,
            self.lines.0,
        )
    }

    fn kinds(&self, text: &mut String) -> fmt::Result {
        text.push_str("| requests | | errors of the failing store | wrong |\n");
        text.push_str("| --- | --: | --: | --: |\n");
        for (kind, count) in &self.totals.kinds {
            let (requests, errors, wrong) = (count.requests, count.store_errors, count.wrong);
            writeln!(text, "| {kind} | {requests} | {errors} | {wrong} |")?;
        }
        Ok(())
    }

    fn wrong_answers(&self, text: &mut String) -> fmt::Result {
        if self.totals.details.is_empty() {
            return Ok(());
        }
        text.push_str("\nWrong answers, the first ones:\n\n```text\n");
        for detail in &self.totals.details {
            writeln!(text, "{detail}")?;
        }
        text.push_str("```\n");
        Ok(())
    }
}

/// A growth in megabytes.
struct InMegabytes(Growth);

impl fmt::Display for InMegabytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let Growth { base, peak, last } = self.0;
        let growth = megabytes(self.0.bytes());
        let [base, peak, last] = [base, peak, last].map(megabytes);
        write!(
            f,
            "+{growth:.2} MiB: {base:.2} after the warm-up, at most {peak:.2}, {last:.2} at the end"
        )
    }
}
