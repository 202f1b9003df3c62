//! The release profile that `docs/lambda.md` recommends for users' workspaces, and that generated
//! projects have.

use std::collections::BTreeSet;

const MANIFEST: &str = include_str!("../../Cargo.toml");
const GENERATED: &str = include_str!("../../templates/function/Cargo.toml{{nil}}");
const PAGE: &str = include_str!("../../docs/lambda.md");

/// Returns the settings between two lines.
fn settings(text: &'static str, from: &str, to: &str) -> BTreeSet<&'static str> {
    let lines = text.lines().skip_while(|line| *line != from);
    let lines = lines.take_while(|line| *line != to);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// Returns the profile of this workspace, as other workspaces need it.
fn expected() -> BTreeSet<&'static str> {
    let mut expected = settings(MANIFEST, "[profile.release]", "[profile.counts]");
    // Workspace members here, covered by the profile itself; dependencies in users' workspaces.
    assert!(expected.insert(r#"lambda_tools = { opt-level = "s" }"#));
    assert!(expected.insert(r#"lambda_tools_core = { opt-level = "s" }"#));
    // Only a program of the benchmark uses it.
    assert!(expected.remove(r#"rmcp = { opt-level = "s" }"#));
    expected
}

#[test]
fn the_page_and_generated_projects_have_the_release_profile_of_this_workspace() {
    for text in [PAGE, GENERATED] {
        // In generated manifests, it is the last part.
        assert_eq!(settings(text, "[profile.release]", "```"), expected());
    }
}
