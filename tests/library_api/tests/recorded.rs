//! The public API of each library crate is the one in the file of its name, with all Cargo features.
//!
//! A change of the API becomes visible in a change of these files, so that it is neither accidental
//! nor missing from the change log. `UPDATE_EXPECTED=1` writes the files.

use std::{collections::BTreeSet, env, fs, path::PathBuf, process::Command};

use serde_json::{Value, json};

/// Returns a path relative to the repository's root.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Returns rustdoc's description of a crate, as JSON.
fn description(package: &str) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository("target"), |it| repository("").join(it));
    let status = Command::new(env!("CARGO"))
        .args(["rustdoc", "--quiet", "--lib", "--package", package])
        .args(["--all-features", "--target-dir"])
        .arg(&target)
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        // Without the option, public items that a hidden module defines are missing.
        .arg("--document-hidden-items")
        // Only rustdoc may use unstable features, so that the dependencies are not built again.
        .env("RUSTDOC", repository(".ci/rustdoc"))
        .current_dir(repository(""))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "rustdoc cannot describe {package}");
    let file = target.join(format!("doc/{package}.json"));
    let text = fs::read_to_string(&file).expect("rustdoc writes the file");
    let mut description: Value = serde_json::from_str(&text).expect("the file is JSON");
    hide(&mut description);
    fs::write(&file, description.to_string()).expect("the file can be written");
    file
}

/// Removes hidden items from the modules, types and implementations that have them. Items of a hidden
/// module stay, for a visible one may re-export them.
fn hide(description: &mut Value) {
    let index = description["index"].as_object_mut().expect("items by id");
    let is_hidden = |item: &&Value| {
        let attributes = item["attrs"].as_array().expect("attributes");
        attributes.contains(&json!({"other": "#[doc(hidden)]"}))
    };
    let hidden: BTreeSet<_> = index
        .values()
        .filter(is_hidden)
        .filter_map(|it| it["id"].as_u64())
        .collect();
    for item in index.values_mut() {
        remove(&mut item["inner"], &hidden);
    }
}

/// The lists of what belongs to a module, a type or an implementation.
const LISTS: [&str; 4] = ["fields", "impls", "items", "variants"];

/// Removes ids from all lists of members.
fn remove(value: &mut Value, ids: &BTreeSet<u64>) {
    let Value::Object(fields) = value else {
        return;
    };
    for (name, value) in fields {
        match value {
            Value::Array(members) if LISTS.contains(&name.as_str()) => {
                members.retain(|it| it.as_u64().is_none_or(|id| !ids.contains(&id)));
            }
            _ => remove(value, ids),
        }
    }
}

fn public_items(package: &str) -> Vec<String> {
    let api = public_api::Builder::from_rustdoc_json(description(package))
        // Other crates implement these traits for all types.
        .omit_blanket_impls(true)
        .build()
        .expect("the version of public-api in Cargo.toml reads the JSON of this Rust version");
    api.items().map(ToString::to_string).collect()
}

/// Returns the differences between a crate's API and the recorded one.
fn changes_in(package: &str) -> Vec<String> {
    let file = repository(&format!("tests/library_api/{package}.txt"));
    let items = public_items(package);
    assert!(
        items.contains(&format!("pub mod {package}")),
        "the description has no items: {items:?}"
    );
    if env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&file, items.join("\n") + "\n").expect("the file can be written");
    }
    let recorded = fs::read_to_string(&file).expect("the recorded API");
    let recorded: BTreeSet<_> = recorded.lines().collect();
    let items: BTreeSet<_> = items.iter().map(String::as_str).collect();
    let removed = recorded.difference(&items).map(|it| format!("- {it}"));
    let added = items.difference(&recorded).map(|it| format!("+ {it}"));
    removed.chain(added).collect()
}

#[test]
fn the_public_api_is_the_recorded_one() {
    let crates = [
        "lambda_tools_schema",
        "lambda_tools_core",
        "lambda_tools_records",
        "lambda_tools_accounts",
        "lambda_tools_client",
        "lambda_tools_openapi",
        "lambda_tools_explorer",
        "lambda_tools",
    ];
    let changes: Vec<_> = crates.into_iter().flat_map(changes_in).collect();
    assert!(
        changes.is_empty(),
        "the public API has changed; if this is intended, run this test with UPDATE_EXPECTED=1:\n{}",
        changes.join("\n"),
    );
}
