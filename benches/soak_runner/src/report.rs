//! The report of a run, and whether it meets its limits.

use std::{
    error::Error,
    fmt::{self, Write},
    fs,
    process::Command,
};

use crate::{
    Options,
    function::Function,
    growth::{FUNCTIONS, Growth, Resources, growths},
    plot,
};

/// Everything that a run has found.
pub(crate) struct Outcome {
    pub(crate) functions: [Function; 2],
    /// The resources of both functions in each second.
    pub(crate) seconds: Vec<[Resources; 2]>,
    /// The requests to the store and the issuer, in words.
    pub(crate) connections: String,
}

impl Outcome {
    /// Prints the report, and writes `SOAK.md` and `soak.svg` to the folder of the options; fails if
    /// a limit is not met.
    pub(crate) fn report(&self, options: &Options) -> Result<(), Box<dyn Error>> {
        let growths = if options.answers_only {
            Vec::new()
        } else {
            growths(&self.seconds)
        };
        let text = self.text(options, &growths)?;
        print!("{text}");
        if let Some(folder) = &options.output {
            fs::create_dir_all(folder)?;
            fs::write(folder.join("SOAK.md"), text)?;
            plot::write(&folder.join("soak.svg"), &self.seconds)?;
        }
        let exceeded = growths.iter().filter(|it| it.is_exceeded());
        let mut failures: Vec<_> = exceeded.map(|it| format!("{} grew", it.name)).collect();
        for (what, count) in self.counts() {
            if count > 0 {
                failures.push(format!("{count} {what}"));
            }
        }
        if failures.is_empty() {
            return Ok(());
        }
        Err(failures.join("; ").into())
    }

    /// Returns the events of which none may occur.
    fn counts(&self) -> [(&'static str, u64); 2] {
        let wrong = self.functions.iter().map(|it| it.tally.sum(|it| it.wrong));
        let revealing = self.functions.iter().map(|it| it.revealing as u64);
        [
            ("wrong answers", wrong.sum()),
            ("log lines with a secret", revealing.sum()),
        ]
    }

    fn text(&self, options: &Options, growths: &[Growth]) -> Result<String, fmt::Error> {
        let mut text = format!(
            "# An hour under load\n\n{}\n\nWritten by `benches/soak`, which \
             [README.md](README.md#an-hour-under-load) describes: {} minutes, at most {} \
             requests per second.\n\n![Memory over time](soak.svg)\n\n",
            machine(),
            options.minutes,
            options.pace
        );
        text += "| | measured | limit |\n| --- | --- | --- |\n";
        for (what, count) in self.counts() {
            writeln!(text, "| {what} | {count} | 0 |")?;
        }
        for it in growths {
            let (name, base, limit) = (&it.name, it.base, it.limit);
            let amount = it.amount();
            writeln!(
                text,
                "| {name}, {base} after the warm-up | +{amount} | +{limit} |"
            )?;
        }
        writeln!(text, "\n- {}", self.connections)?;
        for (name, function) in FUNCTIONS.iter().zip(&self.functions) {
            let requests = function.tally.sum(|it| it.requests);
            let lines = function.lines;
            writeln!(text, "- {name}: {requests} requests, {lines} log lines")?;
        }
        text +=
            "\n| requests | | errors of the failing store | wrong |\n| --- | --: | --: | --: |\n";
        for (kind, it) in self.functions.iter().flat_map(|it| &it.tally.kinds) {
            let (requests, errors, wrong) = (it.requests, it.store_errors, it.wrong);
            writeln!(text, "| {kind} | {requests} | {errors} | {wrong} |")?;
        }
        for detail in self.functions.iter().flat_map(|it| &it.tally.details) {
            write!(text, "\n```text\n{detail}\n```\n")?;
        }
        Ok(text)
    }
}

/// Returns the date, the machine and the commit.
fn machine() -> String {
    let script = "echo $(date --utc '+%Y-%m-%d %H:%M UTC'), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2), \
                  $(nproc) cores, $(uname -sr), commit $(git describe --always --dirty --exclude='*').";
    let output = Command::new("sh").args(["-c", script]).output();
    output.map_or(String::new(), |it| {
        String::from_utf8_lossy(&it.stdout).trim().to_owned()
    })
}
