//! The report, as Markdown and JSON, and the check of the limits.

mod about;
mod format;
mod json;
mod limits;
mod tables;
mod target;
mod targets;

use std::{error::Error, fs, io};

use serde_json::Value;

use self::target::Target;
use crate::{contestants::Id, measure::Row, scaling::Scaling, share::Shares};

/// A file's name, its size, and the size of its zip.
type File = (&'static str, u64, u64);

/// The results of the parts that have been measured.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) comparison: Option<Comparison>,
    pub(crate) shares: Option<Shares>,
    pub(crate) scaling: Option<Scaling>,
}

/// The results of the contestants.
pub(crate) struct Comparison {
    pub(crate) rows: Vec<Row>,
    pub(crate) files: Vec<File>,
}

impl Comparison {
    fn row(&self, id: Id) -> &Row {
        let row = self.rows.iter().find(|row| row.id == id);
        row.expect("every contestant is measured")
    }

    /// The size of a program's zip, in megabytes.
    fn zip(&self, name: &str) -> f64 {
        let file = self.files.iter().find(|(file, _, _)| *file == name);
        file.map_or(f64::NAN, |(_, _, zip)| format::mega(*zip))
    }
}

/// A report, and the error that names the limits that are not met.
pub(crate) struct Report {
    text: String,
    figures: Value,
    failures: Option<String>,
}

impl Report {
    pub(crate) fn of(results: &Results) -> Result<Self, Box<dyn Error>> {
        let about = about::about();
        let mut text = format!("# Benchmark results\n\n{about}\n\n");
        text += "Written by `benches/run`. The times are from one run on one machine; only ratios \
                 apply elsewhere.\n\n";
        let mut targets = Vec::<Target>::new();
        if let Some(comparison) = &results.comparison {
            tables::comparison(&mut text, comparison)?;
            targets.extend(targets::of_comparison(comparison));
            targets.extend(limits::of_comparison(comparison));
        }
        if let Some(shares) = &results.shares {
            tables::shares(&mut text, shares)?;
            targets.extend(limits::of_shares(shares));
        }
        if let Some(scaling) = &results.scaling {
            tables::scaling(&mut text, scaling)?;
            targets.extend(targets::of_scaling(scaling));
            targets.extend(limits::of_scaling(scaling));
        }
        target::table(&mut text, &targets)?;
        Ok(Self {
            text,
            figures: json::figures(&about, results),
            failures: target::failures(&targets),
        })
    }

    /// Writes `benches/RESULTS.md` and `benches/RESULTS.json`.
    pub(crate) fn write(&self) -> io::Result<()> {
        fs::write("benches/RESULTS.md", &self.text)?;
        fs::write("benches/RESULTS.json", format!("{:#}\n", self.figures))
    }

    /// Prints the report; fails if a limit is not met.
    pub(crate) fn print(self) -> Result<(), Box<dyn Error>> {
        print!("{}", self.text);
        self.failures
            .map_or(Ok(()), |failures| Err(failures.into()))
    }
}
