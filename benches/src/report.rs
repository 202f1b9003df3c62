//! The report, with the limits.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt::{self, Write},
    fs,
    process::Command,
};

use crate::{
    contestants::{self, Id},
    measure::{Figures, Measure},
};

/// The accepted values, by their names.
const ACCEPTED: &str = "benches/ACCEPTED.json";
/// How much larger than accepted a value may be.
const TOLERANCE: f64 = 1.05;

/// A file's name, its size, and the size of its zip, in megabytes.
type File = (&'static str, (f64, f64));

/// A value that should be small.
struct Value {
    name: String,
    unit: &'static str,
    measured: f64,
}

/// A report.
pub(crate) struct Report<'a> {
    figures: &'a Figures,
    files: &'a [File],
    limited: Vec<Value>,
}

impl<'a> Report<'a> {
    pub(crate) fn of(figures: &'a Figures, files: &'a [File]) -> Self {
        Self {
            figures,
            files,
            limited: limited(figures, files),
        }
    }

    /// Accepts what was measured.
    pub(crate) fn accept(&self) -> Result<(), Box<dyn Error>> {
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        let accepted = self.limited.iter();
        let accepted: BTreeMap<_, _> = accepted
            .map(|it| (&it.name, rounded(it.measured)))
            .collect();
        let text = serde_json::to_string_pretty(&accepted)? + "\n";
        Ok(fs::write(ACCEPTED, text)?)
    }

    /// Fails if a value exceeds its limit.
    pub(crate) fn check(&self) -> Result<(), Box<dyn Error>> {
        let limits = limits()?;
        let is_exceeded = |value: &&Value| {
            let limit = limits.get(&value.name);
            limit.is_none_or(|limit| value.measured > *limit)
        };
        let exceeded = self.limited.iter().filter(is_exceeded);
        let names: Vec<_> = exceeded.map(|value| &*value.name).collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(format!("limits exceeded: {}", names.join("; ")).into())
    }

    pub(crate) fn text(&self) -> Result<String, Box<dyn Error>> {
        let mut text = format!("# Benchmark results\n\n{}\n\n", machine());
        text += "Written by `benches/run`, which [README.md](README.md) describes. The times are from one \
                 run on one machine; only ratios apply elsewhere.\n\n";
        self.contestants(&mut text)?;
        let limits = limits()?;
        text += "\n## Limits\n\nA limit is the accepted value plus 5%; the run fails beyond it.\n\n\
                 | | measured | limit |\n| --- | --: | --: |\n";
        for value in &self.limited {
            let (name, unit, measured) = (&value.name, value.unit, value.measured);
            let limit = limits.get(name).copied().unwrap_or(f64::NAN);
            let miss = if measured > limit {
                " **exceeded**"
            } else {
                ""
            };
            let row = format!("| {name} | {measured:.2}{unit} | {limit:.2}{unit}{miss} |");
            writeln!(text, "{row}")?;
        }
        Ok(text)
    }

    fn contestants(&self, text: &mut String) -> fmt::Result {
        text.push_str(
            "| | cold start | first call | both | warm call | calls/s | CPU per call | peak RSS |\n\
             | --- | --: | --: | --: | --: | --: | --: | --: |\n",
        );
        for (id, name) in contestants::NAMES.iter().enumerate() {
            let median = |measure| self.figures.median(id, measure);
            let time = |measure| format!("{:.0} µs", median(measure));
            writeln!(
                text,
                "| {name} | {} | {} | {} | {:.1} µs | {:.0} | {} | {:.2} MB |",
                time(Measure::ColdStart),
                time(Measure::FirstCall),
                time(Measure::Both),
                median(Measure::WarmCall),
                1e6 / median(Measure::PerCall),
                time(Measure::Cpu),
                median(Measure::Memory),
            )?;
        }
        text.push_str("\n| | binary | zip |\n| --- | --: | --: |\n");
        for (name, (binary, zip)) in self.files {
            writeln!(text, "| {name} | {binary:.2} MB | {zip:.2} MB |")?;
        }
        Ok(())
    }
}

fn limits() -> Result<BTreeMap<String, f64>, Box<dyn Error>> {
    let mut limits: BTreeMap<_, f64> = serde_json::from_str(&fs::read_to_string(ACCEPTED)?)?;
    for limit in limits.values_mut() {
        *limit *= TOLERANCE;
    }
    Ok(limits)
}

fn zip(files: &[File], name: &str) -> f64 {
    let file = files.iter().find(|(file, _)| *file == name);
    file.map_or(f64::NAN, |(_, (_, zip))| *zip)
}

/// Returns the values with a limit. Each is a ratio to another contestant, or a size.
fn limited(figures: &Figures, files: &[File]) -> Vec<Value> {
    use Id::{Bare, Hello, McpLegacy, McpModern, Oxp, Rmcp};
    use Measure::{Both, Cpu, Memory, PerCall, WarmCall};
    let ratios = [
        ("warm call over OXP", WarmCall, Oxp, Bare),
        ("warm call over MCP 2026-07-28", WarmCall, McpModern, Bare),
        ("CPU per call over OXP", Cpu, Oxp, Bare),
        (
            "time per call over MCP 2025-11-25",
            PerCall,
            McpLegacy,
            Rmcp,
        ),
        ("cold start and first call over OXP", Both, Oxp, Bare),
        (
            "cold start and first call over MCP 2025-11-25",
            Both,
            McpLegacy,
            Rmcp,
        ),
        ("peak RSS", Memory, Oxp, Bare),
        ("peak RSS of hello", Memory, Hello, Bare),
    ];
    let ratios = ratios.map(|(name, measure, one, other)| Value {
        name: match other {
            Rmcp => format!("{name}, relative to rmcp"),
            _ => format!("{name}, relative to bare"),
        },
        unit: " ×",
        measured: figures.ratio(measure, one, other),
    });
    let zips = [("zip of the toolbox", "toolbox"), ("zip of hello", "hello")];
    let zips = zips.map(|(name, file)| Value {
        name: name.to_owned(),
        unit: " MB",
        measured: zip(files, file),
    });
    ratios.into_iter().chain(zips).collect()
}

/// Returns the date, the machine and the versions.
fn machine() -> String {
    let script = "echo $(date --utc '+%Y-%m-%d %H:%M UTC'), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2), \
                  $(nproc) cores, $(uname -sr), $(rustc --version), commit $(git describe --always --dirty --exclude='*'), \
                  rmcp $(grep -A1 'name = \"rmcp\"' Cargo.lock | grep -oE '[0-9.]+'), \
                  lambda_http $(grep -A1 'name = \"lambda_http\"' Cargo.lock | grep -oE '[0-9.]+').";
    let output = Command::new("sh").args(["-c", script]).output();
    output.map_or(String::new(), |it| {
        String::from_utf8_lossy(&it.stdout).trim().to_owned()
    })
}
