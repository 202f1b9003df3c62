//! The benchmark: the toolbox and hello against bare `lambda_http` and `rmcp`, under one runtime API.
//!
//! Contestants are measured in turns (A B C A B C …), and only ratios and differences within one turn
//! are compared, so that a machine whose speed drifts affects them all alike. Usage: `benches/run`.

mod contestants;
mod function;
mod measure;
mod report;
mod runtime_api;

use std::{env, error::Error, fs};

use function::sizes;
use report::Report;

fn main() -> Result<(), Box<dyn Error>> {
    let programs = env::current_exe()?.parent().ok_or("no folder")?.to_owned();
    // First, so that a missing program is reported at once.
    let mut files = Vec::new();
    for name in ["bare", "rmcp_service", "hello", "toolbox"] {
        files.push((name, sizes(&programs.join(name))?));
    }
    let figures = measure::measure(&contestants::all(&programs))?;
    let report = Report::of(&figures, &files);
    if env::var("UPDATE_ACCEPTED").is_ok_and(|it| it == "1") {
        report.accept()?;
    }
    let text = report.text()?;
    print!("{text}");
    fs::write("benches/RESULTS.md", text)?;
    report.check()
}
