//! The summary that the command prints.
//!
//! It is short, because hundreds of operations of a large document may be left out.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use lambda_tools::from_openapi::{ApiTools, Note, Report};
use serde_json::json;

use crate::output::{quoted, shown, typed};

/// The maximum number of lines of a report that are printed.
const MOST_LINES: usize = 20;

/// Prints the groups of operations to choose from, and a command, which ends with `end`, that
/// chooses the largest one.
pub(crate) fn groups(groups: &[(String, usize)], end: &str, to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "Operations by tag, or by path if they have none:")?;
    let lines = groups
        .iter()
        .map(|(name, count)| format!("{count:>6}  {name}"));
    print_lines(lines, to)?;
    let largest = groups.iter().max_by_key(|(_, count)| count);
    let choice = match largest {
        Some((path, _)) if path.starts_with('/') => {
            format!("--include-path {}", quoted(&format!("{path}*")))
        }
        Some((tag, _)) => format!("--include-tag {}", quoted(tag)),
        None => "--all".to_owned(),
    };
    print_lines(
        [
            "Choose some of them, single ones with --include-operation, or --all; for example:"
                .to_owned(),
            format!("  {} {choice}{end}", typed()),
        ],
        to,
    )
}

/// Prints what was made and left out, and what the tools need; the names of the tools if they are
/// nowhere else.
pub(crate) fn print(
    tools: &ApiTools,
    report: &Report,
    has_names: bool,
    to: &mut impl Write,
) -> io::Result<()> {
    let (count, size) = (tools.len(), tools.to_json().len().div_ceil(1000));
    let (chosen, all) = (report.chosen, report.operations);
    let mut lines = vec![format!(
        "Tools: {count} ({size} KB), from {chosen} of {all} operations"
    )];
    if has_names {
        lines.extend(
            tools
                .ids()
                .map(|(id, operation)| format!("  {id}  {operation}")),
        );
    }
    if !tools.secrets().is_empty() {
        lines.push(format!("Secrets to set: {}", tools.secrets().join(", ")));
    }
    for it in tools.providers() {
        lines.push(format!("Provider to register: {}", it.id));
        lines.push(format!("  URLs: {} {}", it.authorize_url, it.token_url));
        if !it.scopes.is_empty() {
            lines.push(format!("  scopes: {}", it.scopes.join(" ")));
        }
    }
    if !report.left_out.is_empty() {
        lines.push(format!("Left out: {}", report.left_out.len()));
    }
    let left_out = by_reason(&report.left_out).into_iter();
    lines.extend(left_out.map(|line| format!("  {line}")));
    print_lines(lines, to)
}

fn print_lines(lines: impl IntoIterator<Item = String>, to: &mut impl Write) -> io::Result<()> {
    let mut lines = lines.into_iter();
    lines.try_for_each(|line| writeln!(to, "{}", shown(&line)))
}

/// Returns the operations that are left out, one line for each reason.
fn by_reason(left_out: &[Note]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for note in left_out {
        reasons.entry(&note.text).or_default().push(&note.operation);
    }
    let lines = reasons.iter().map(|(reason, all)| match &**all {
        [one] => format!("{one}: {reason}"),
        several => format!("{} and {} more: {reason}", several[0], several.len() - 1),
    });
    shortened(lines.collect())
}

/// Returns the report as JSON lines.
pub(crate) fn lines(report: &Report) -> String {
    let line = |(kind, it): (&str, &Note)| {
        json!({"kind": kind, "operation": it.operation, "text": it.text}).to_string() + "\n"
    };
    all(report).map(line).collect()
}

/// Returns the first notes of the report; what was left out is in the summary.
pub(crate) fn excerpt(report: &Report) -> Vec<String> {
    let lines = report.notes.iter().map(|it| format!("note: {it}"));
    shortened(lines.collect())
}

fn all(report: &Report) -> impl Iterator<Item = (&'static str, &Note)> {
    let left_out = report.left_out.iter().map(|it| ("left out", it));
    left_out.chain(report.notes.iter().map(|it| ("note", it)))
}

fn shortened(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MOST_LINES {
        let more = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
        lines.push(format!("and {more} more; --report FILE writes all"));
    }
    lines
}
