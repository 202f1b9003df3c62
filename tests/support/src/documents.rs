//! The tables of `docs/operations.md`, which tests compare with the code.

use std::fs;

use crate::repository;

/// The rows of the table in `docs/operations.md` whose first column has this heading.
pub fn table(heading: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(repository("docs/operations.md")).unwrap();
    let cells = |line: &str| -> Vec<String> {
        let line = line.strip_prefix('|').unwrap().strip_suffix('|').unwrap();
        let cells = line.split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<_> = text
        .lines()
        .skip_while(|line| !line.starts_with(&format!("| {heading} | ")))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(cells)
        .collect();
    assert!(rows.len() > 1, "no table has the heading {heading}");
    rows
}

/// The words between backquotes.
pub fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}
