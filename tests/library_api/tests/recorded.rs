//! The public API of the library is the one in `lambda_tools.txt`, with all Cargo features.
//!
//! A change of the API becomes visible in a change of that file, so that it is neither accidental nor
//! missing from the change log. `UPDATE_EXPECTED=1` writes the file.

use std::{collections::BTreeSet, env, fs, path::PathBuf, process::Command};

/// A path relative to the repository's root.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Rustdoc's description of the library, as JSON.
fn description() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository("target"), |it| repository("").join(it));
    let status = Command::new(env!("CARGO"))
        .args(["rustdoc", "--quiet", "--lib", "--package", "lambda_tools"])
        .args(["--all-features", "--target-dir"])
        .arg(&target)
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        // Only rustdoc may use unstable features, so that the dependencies are not built again.
        .env("RUSTDOC", repository(".ci/rustdoc"))
        .current_dir(repository(""))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "rustdoc cannot describe the library");
    target.join("doc/lambda_tools.json")
}

fn public_items() -> Vec<String> {
    let api = public_api::Builder::from_rustdoc_json(description())
        // Other crates implement these traits for all types.
        .omit_blanket_impls(true)
        .build()
        .expect("the version of public-api in Cargo.toml reads the JSON of this Rust version");
    api.items().map(ToString::to_string).collect()
}

#[test]
fn the_public_api_is_the_recorded_one() {
    let file = repository("tests/library_api/lambda_tools.txt");
    let items = public_items();
    assert!(
        items.iter().any(|item| item == "pub mod lambda_tools"),
        "the description has no items: {items:?}"
    );
    if env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&file, items.join("\n") + "\n").expect("the file can be written");
    }
    let recorded = fs::read_to_string(&file).expect("the recorded API");
    let recorded: BTreeSet<_> = recorded.lines().collect();
    let items: BTreeSet<_> = items.iter().map(String::as_str).collect();
    let removed: Vec<_> = recorded
        .difference(&items)
        .map(|it| format!("- {it}"))
        .collect();
    let added: Vec<_> = items
        .difference(&recorded)
        .map(|it| format!("+ {it}"))
        .collect();
    assert!(
        removed.is_empty() && added.is_empty(),
        "the public API has changed; if this is intended, run this test with UPDATE_EXPECTED=1:\n{}\n{}",
        removed.join("\n"),
        added.join("\n"),
    );
}
