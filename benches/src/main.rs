//! The benchmark: the toolbox against bare `lambda_http` and its peers, under one runtime API.
//!
//! Contestants are measured in turns (A B C A B C …), so that a machine whose speed drifts affects
//! them all alike. Only the medians and ratios of one run are meaningful. Usage: `benches/run`.

mod contestants;
mod cpu_group;
mod events;
mod function;
mod issuer;
mod measure;
mod report;
mod runtime_api;
mod scaling;
mod share;
mod spread;

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
};

use function::{Start, sizes};
use report::{Comparison, Report, Results};

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Comparison,
    Share,
    Scaling,
}

impl Part {
    const ALL: [Self; 3] = [Self::Comparison, Self::Share, Self::Scaling];

    /// The parts that the arguments name: all without arguments.
    fn named(arguments: &[String]) -> Result<Vec<Self>, Box<dyn Error>> {
        const USAGE: &str = "usage: benches/run [--only comparison|share|scaling]...";
        let part = |pair: &[String]| match pair {
            [only, part] if only == "--only" => match part.as_str() {
                "comparison" => Ok(Self::Comparison),
                "share" => Ok(Self::Share),
                "scaling" => Ok(Self::Scaling),
                _ => Err(USAGE.into()),
            },
            _ => Err(USAGE.into()),
        };
        if arguments.is_empty() {
            return Ok(Self::ALL.to_vec());
        }
        arguments.chunks(2).map(part).collect()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let parts = Part::named(&arguments)?;
    let results = measure_parts(&parts)?;
    let report = Report::of(&results)?;
    if arguments.is_empty() {
        report.write()?;
    }
    report.print()
}

fn measure_parts(parts: &[Part]) -> Result<Results, Box<dyn Error>> {
    let programs = env::current_exe()?.parent().ok_or("no folder")?.to_owned();
    let mut results = Results::default();
    // In the order of the report.
    if parts.contains(&Part::Comparison) {
        results.comparison = Some(compare(&programs)?);
    }
    if parts.contains(&Part::Share) {
        results.shares = Some(share::measure(&programs)?);
    }
    if parts.contains(&Part::Scaling) {
        results.scaling = Some(scaling::measure(&Start::of(programs.join("scale")))?);
    }
    Ok(results)
}

fn compare(programs: &Path) -> Result<Comparison, Box<dyn Error>> {
    let python = env::var_os("BENCH_PYTHON").ok_or("run benches/run, which sets BENCH_PYTHON")?;
    let mut all = contestants::compiled(programs);
    all.extend(contestants::in_python(&PathBuf::from(python))?);
    all.extend(contestants::with_credentials(programs)?);
    // First, so that a missing program is reported at once.
    let mut files = Vec::new();
    for name in ["bare", "handwritten", "rmcp_service", "hello", "toolbox"] {
        let (binary, zip) = sizes(&programs.join(name))?;
        files.push((name, binary, zip));
    }
    let rows = measure::measure(&all)?;
    Ok(Comparison { rows, files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_by_options() {
        let named = |text: &str| {
            let arguments: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
            Part::named(&arguments)
        };
        assert_eq!(named("").unwrap(), Part::ALL);
        let two = named("--only share --only scaling").unwrap();
        assert_eq!(two, [Part::Share, Part::Scaling]);
        for wrong in ["share", "--only", "--only all", "--only share scaling"] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
