//! The tables of figures, in Markdown.

use std::fmt::{self, Write as _};

use super::{
    Comparison, File,
    format::{megabytes, spread, time},
};
use crate::{
    scaling::Scaling,
    share::{self, Shares},
};

pub(super) fn comparison(text: &mut String, comparison: &Comparison) -> fmt::Result {
    *text += "## Comparison with bare `lambda_http` and peers\n\n\
              Median (10th to 90th percentile) of 50 cold starts and of 5,000 warm calls per \
              contestant, in turns.\n\n\
              | | cold start | first call | both | warm call p50 | p99 | calls/s | CPU per call | peak RSS |\n\
              | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for row in &comparison.rows {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {:.0} | {} | {} |",
            row.name,
            spread(&row.starts.cold),
            spread(&row.starts.first),
            spread(&row.starts.total),
            spread(&row.warm),
            time(row.warm.p99),
            row.calls_per_second,
            time(row.cpu_per_call.median),
            megabytes(row.peak_memory),
        )?;
    }
    sizes(text, &comparison.files)
}

fn sizes(text: &mut String, files: &[File]) -> fmt::Result {
    *text += "\n| | binary | zip |\n| --- | --- | --- |\n";
    for (name, binary, zip) in files {
        let (binary, zip) = (megabytes(*binary), megabytes(*zip));
        writeln!(text, "| {name} | {binary} | {zip} |")?;
    }
    *text += "\n";
    Ok(())
}

pub(super) fn shares(text: &mut String, shares: &Shares) -> fmt::Result {
    *text += "## A share of a processor\n\n";
    match shares {
        Shares::Measured(rows) => share_rows(text, rows),
        Shares::Unavailable(reason) => writeln!(
            text,
            "**Not measured**: this machine allows no quota of processor time ({reason}).\n"
        ),
    }
}

fn share_rows(text: &mut String, rows: &[share::Row]) -> fmt::Result {
    *text += "From its first request for an event, the process has the share that Lambda gives for \
              the memory: in each period of 20 ms, 20 ms × MB / 1,769. Median (10th to 90th \
              percentile) of 30 cold starts and of 600 warm calls, sent without pauses.\n\n\
              | memory | | cold start | first call | both | warm call p50 | p99 | throttled periods |\n\
              | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for row in rows {
        writeln!(
            text,
            "| {} MB | {} | {} | {} | {} | {} | {} | {:.0}% |",
            row.megabytes,
            row.name,
            spread(&row.starts.cold),
            spread(&row.starts.first),
            spread(&row.starts.total),
            spread(&row.warm),
            time(row.warm.p99),
            row.throttled * 100.0,
        )?;
    }
    *text += "\n";
    Ok(())
}

pub(super) fn scaling(text: &mut String, scaling: &Scaling) -> fmt::Result {
    *text += "## Scaling\n\n\
              | tools | cold start | first `/tools` | warm `/tools` | unchanged | list size | warm call |\n\
              | --- | --- | --- | --- | --- | --- | --- |\n";
    for tools in &scaling.tools {
        let unchanged = tools.unchanged_list.map(|times| time(times.median));
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            tools.count,
            spread(&tools.cold),
            time(tools.first_list.median),
            time(tools.warm_list.median),
            unchanged.as_deref().unwrap_or("not measured"),
            megabytes(tools.list_bytes as u64),
            time(tools.call.median),
        )?;
    }
    *text += "\n| event | warm call | CPU per call | parsing event and body once |\n\
              | --- | --- | --- | --- |\n";
    for input in &scaling.inputs {
        writeln!(
            text,
            "| {} bytes | {} | {} | {} |",
            input.bytes,
            spread(&input.latency),
            time(input.cpu_per_call.median),
            time(input.parsing.median),
        )?;
    }
    *text += "\n| schema | first call | warm call |\n| --- | --- | --- |\n";
    for schema in &scaling.schemas {
        let (first, warm) = (spread(&schema.first), time(schema.warm.median));
        writeln!(text, "| {} | {first} | {warm} |", schema.name)?;
    }
    *text += "\n";
    Ok(())
}
