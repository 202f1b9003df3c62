//! The summary that the command prints.
//!
//! It is short, because hundreds of operations of a large document may be left out.

use std::collections::BTreeMap;

use lambda_tools::from_openapi::{ApiTools, Note, Report};
use serde_json::json;

use crate::output::{self, quoted, typed};

/// The maximum number of operations that are served without a choice.
pub(crate) const MOST_WITHOUT_CHOICE: usize = 40;
/// The maximum number of lines of a report that are printed.
const MOST_LINES: usize = 20;

/// Prints the groups of operations to choose from, and a command, which ends with `end`, that
/// chooses the largest one that can be served as it is.
pub(crate) fn groups(groups: &[(String, usize)], end: &str) {
    output::print("Operations by tag, or by path if they have none:");
    for (name, count) in groups {
        output::print(&format!("{count:>6}  {name}"));
    }
    let served = (groups.iter()).filter(|(_, it)| *it <= MOST_WITHOUT_CHOICE);
    let choice = match served.max_by_key(|(_, count)| count) {
        Some((path, _)) if path.starts_with('/') => {
            format!("--include-path {}", quoted(&format!("{path}*")))
        }
        Some((tag, _)) => format!("--include-tag {}", quoted(tag)),
        None => "--all --searchable".to_owned(),
    };
    output::print(
        "Choose some of them, single ones with --include-operation, or --all; for example:",
    );
    output::print(&format!("  {} {choice}{end}", typed()));
}

/// Prints what was made and left out, and what the tools need; the names of the tools if they are
/// nowhere else.
pub(crate) fn print(tools: &ApiTools, report: &Report, has_names: bool) {
    let (count, size) = (tools.ids().count(), tools.to_json().len().div_ceil(1000));
    let (chosen, all) = (report.chosen, report.operations);
    let print = |line: String| output::print(&line);
    print(format!(
        "Tools: {count} ({size} KB), from {chosen} of {all} operations"
    ));
    for (id, operation) in tools.ids().filter(|_| has_names) {
        print(format!("  {id}  {operation}"));
    }
    if !tools.secrets().is_empty() {
        print(format!("Secrets to set: {}", tools.secrets().join(", ")));
    }
    for it in tools.providers() {
        print(format!("Provider to register: {}", it.id));
        print(format!("  URLs: {} {}", it.authorize_url, it.token_url));
        if !it.scopes.is_empty() {
            print(format!("  scopes: {}", it.scopes.join(" ")));
        }
    }
    if !report.left_out.is_empty() {
        print(format!("Left out: {}", report.left_out.len()));
    }
    for line in by_reason(&report.left_out) {
        print(format!("  {line}"));
    }
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
    let left_out = report.left_out.iter().map(|it| ("left out", it));
    let all = left_out.chain(report.notes.iter().map(|it| ("note", it)));
    let line = |(kind, it): (&str, &Note)| {
        json!({"kind": kind, "operation": it.operation, "text": it.text}).to_string() + "\n"
    };
    all.map(line).collect()
}

/// Returns the first notes of the report; what was left out is in the summary.
pub(crate) fn excerpt(report: &Report) -> Vec<String> {
    let lines = report.notes.iter().map(|it| format!("note: {it}"));
    shortened(lines.collect())
}

fn shortened(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MOST_LINES {
        let more = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
        lines.push(format!("and {more} more; --report FILE writes all"));
    }
    lines
}
