//! The release profile that the README recommends for users' workspaces.

use std::collections::BTreeSet;

const MANIFEST: &str = include_str!("../../Cargo.toml");
const README: &str = include_str!("../../README.md");

/// The settings between two lines.
fn settings(text: &'static str, from: &str, to: &str) -> BTreeSet<&'static str> {
    let lines = text.lines().skip_while(|line| *line != from);
    let lines = lines.take_while(|line| *line != to);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

#[test]
fn the_readme_shows_the_release_profile_of_this_workspace() {
    let mut expected = settings(MANIFEST, "[profile.release]", "[profile.counts]");
    // A workspace member here, covered by the profile itself; a dependency in users' workspaces.
    assert!(expected.insert(r#"lambda_tools = { opt-level = "s" }"#));
    let on_lambda = README.split_once("## On Lambda").unwrap().1;
    assert_eq!(settings(on_lambda, "[profile.release]", "```"), expected);
}
