//! The texts of the licenses of what is linked into the functions.

use std::{collections::BTreeSet, fs, process::Command};

use test_support::repository;

use crate::template::stdout_of;

/// Returns the crates that are linked into a function, each with its version.
fn linked_crates(package: &str) -> BTreeSet<String> {
    let tree = |target| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["tree", "--locked", "--package", package])
            .args(["--edges", "normal", "--prefix", "none", "--target", target])
            .current_dir(repository(""));
        stdout_of(&mut cargo)
    };
    ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
        .map(tree)
        .iter()
        .flat_map(|crates| crates.lines())
        .filter_map(|line| {
            let (name, rest) = line.split_once(" v")?;
            let version = rest.split(' ').next()?;
            Some(format!("{name} {version}"))
        })
        .filter(|name| !name.starts_with(&format!("{package} ")))
        .collect()
}

/// Returns the crates that the file of licenses names: each text follows a line of `=`, the
/// license's name, its crates, indented, and another line of `=`.
fn named_crates(package: &str) -> BTreeSet<String> {
    let file = repository(&format!("functions/{package}/THIRD-PARTY-LICENSES.txt"));
    let text = fs::read_to_string(file).unwrap();
    let separator = "=".repeat(80);
    let parts: Vec<_> = text.split(&separator).collect();
    // The introduction, and then headings and texts by turns.
    assert!(parts.len() > 2 && parts.len() % 2 == 1, "{}", parts.len());
    for license in parts.iter().skip(2).step_by(2) {
        assert!(license.len() > 200, "a license has no text: {license}");
    }
    let headings = parts.iter().skip(1).step_by(2);
    headings
        .flat_map(|heading| heading.lines())
        .filter_map(|line| line.strip_prefix("  "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_licenses_of_all_linked_crates_are_in_the_zip() {
    for package in ["hello", "toolbox"] {
        let (linked, named) = (linked_crates(package), named_crates(package));
        let difference: Vec<_> = linked.symmetric_difference(&named).collect();
        assert!(
            difference.is_empty(),
            "run tests/dependencies --update; {package}: {difference:?}"
        );
    }
}

#[test]
fn the_function_contains_no_clients() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--package", "toolbox"]);
    cargo.args(["--edges", "normal,features"]);
    let tree = stdout_of(cargo.current_dir(repository("")));
    assert!(tree.contains(r#"lambda_tools feature "jwt""#), "{tree}");
    assert!(!tree.contains("lambda_tools_client"), "{tree}");
}
