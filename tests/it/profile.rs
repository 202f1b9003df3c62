//! The release profile that README gives to workspaces of its readers.

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
fn readme_gives_the_profile_of_this_workspace() {
    let mut here = settings(MANIFEST, "[profile.release]", "[profile.counts]");
    // A member here, which the profile itself is for; a dependency elsewhere.
    assert!(here.insert(r#"lambda_tools = { opt-level = "s" }"#));
    let on_lambda = README.split_once("## On Lambda").unwrap().1;
    assert_eq!(settings(on_lambda, "[profile.release]", "```"), here);
}
