//! Tests of the files that are not code: the blocks and the links of the README and of the pages in
//! `docs/`, pictures, the release profile, and workflows on GitHub.

use std::{collections::BTreeSet, fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use test_support::{
    documents::{blocks, covered, pages},
    repository,
};

/// Returns the reasons why blocks of a page are not tested.
fn mistakes_in(path: &str, text: &str) -> Vec<String> {
    let blocks = blocks(path, text);
    let previous = [None].into_iter().chain(blocks.iter().map(Some));
    let checked = blocks.iter().zip(previous);
    let mistakes = checked.filter_map(|(block, previous)| {
        let mistake = covered(block, previous).err()?;
        Some(format!("{}: {mistake}", block.place))
    });
    mistakes.collect()
}

#[test]
fn every_block_is_run_or_compiled_or_marked() {
    let pages = pages();
    assert!(pages.len() > 10);
    let mistakes_of = |(path, text): &(String, String)| mistakes_in(path, text);
    let mistakes: Vec<_> = pages.iter().flat_map(mistakes_of).collect();
    assert!(
        mistakes.is_empty(),
        "no test runs or compiles these blocks, and no line `<!-- not run: REASON -->` before them \
         says why:\n{}",
        mistakes.join("\n")
    );
}

#[test]
fn links_lead_to_pages() {
    for (path, text) in pages() {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let defined = text.lines().filter_map(|line| {
            let (name, target) = line.strip_prefix('[')?.split_once("]: ")?;
            if name.contains(']') {
                return None; // A link, and a colon.
            }
            let expected = match name.strip_prefix("picture-") {
                Some(picture) => vec![
                    format!("images/{picture}.png"),
                    format!("images/{picture}.svg"),
                ],
                None => vec![format!("{name}.md")],
            };
            assert!(expected.iter().any(|it| it == target), "{path}: {target}");
            Some((name, target))
        });
        let defined: Vec<_> = defined.collect();
        let used: BTreeSet<_> = targets(&text, "][", ']').collect();
        let names: BTreeSet<_> = defined.iter().map(|(name, _)| *name).collect();
        assert_eq!(used, names, "{path}: references and their definitions");
        // Elsewhere than in the README, these would not work in the documentation.
        let inline = targets(&text, "](", ')').filter(|target| !target.starts_with("https://"));
        let inline: Vec<_> = inline.collect();
        let may_have = path == "README.md" || inline.is_empty();
        assert!(may_have, "{path}: {inline:?}");
        let targets = defined.into_iter().map(|(_, target)| target);
        for target in targets.chain(inline) {
            let file = repository(folder).join(target);
            assert!(file.exists(), "{path}: {target}");
        }
    }
}

/// Returns the text between these marks, outside of blocks.
fn targets<'a>(text: &'a str, from: &'a str, to: char) -> impl Iterator<Item = &'a str> {
    let outside = text.split("```").step_by(2);
    outside.flat_map(move |part| {
        let parts = part.split(from).skip(1);
        parts.filter_map(move |part| Some(part.split_once(to)?.0))
    })
}

/// Pages that one looks things up in, and does not read.
const LONG_PAGES: [&str; 2] = ["docs/architecture.md", "docs/environment.md"];

#[test]
fn pages_are_short_and_have_one_title() {
    for (path, text) in pages() {
        let words = text.split_whitespace();
        let words = words.filter(|word| word.contains(char::is_alphanumeric));
        let is_short = LONG_PAGES.contains(&&*path) || words.count() <= 2_000;
        assert!(is_short, "{path}");
        assert!(path != "README.md" || text.lines().count() <= 90);
        let outside: String = text.split("```").step_by(2).collect();
        let titles = outside.lines().filter(|line| line.starts_with("# "));
        assert!(titles.count() == 1 && text.starts_with("# "), "{path}");
    }
}

#[test]
fn the_pages_install_what_the_tests_use() {
    // The second one has AWS's client for MCP.
    let files = ["requirements.txt", "requirements-aws.txt"];
    let pinned = files.map(|file| fs::read_to_string(repository("tests").join(file)).unwrap());
    let pinned = pinned.concat();
    for (path, text) in pages() {
        for word in text.split([' ', '\n', '`', ')']) {
            if word.contains("==") && word.starts_with(|first: char| first.is_ascii_lowercase()) {
                assert!(pinned.lines().any(|line| line == word), "{path}: {word}");
            }
        }
    }
}

/// Returns the names of the pictures' files, sorted.
fn pictures() -> Vec<String> {
    let files = fs::read_dir(repository("docs/images")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert!(names.len() > 3);
    names
}

/// Returns what a picture is called in a page, and its media type.
fn reference(file: &str) -> (String, &'static str) {
    let path = Path::new(file);
    let kind = match path.extension().unwrap().to_str().unwrap() {
        "png" => "png",
        "svg" => "svg+xml",
        other => panic!("{file}: {other} is no kind of picture"),
    };
    let name = path.file_stem().unwrap().to_str().unwrap();
    (format!("picture-{name}"), kind)
}

#[test]
fn every_picture_is_on_a_page() {
    let pages = pages();
    for file in pictures() {
        let (name, _) = reference(&file);
        let is_shown = |(_, text): &(String, String)| {
            text.contains(&format!("[{name}]\n"))
                || text.contains(&format!("](docs/images/{file})"))
        };
        assert!(pages.iter().any(is_shown), "no page has {file}");
    }
}

/// There, a page has only the definitions in this file. `UPDATE_EXPECTED=1` writes it.
#[test]
fn the_documentation_of_the_crate_has_the_pictures() {
    let lines = pictures().into_iter().map(|file| {
        let (name, kind) = reference(&file);
        let data = STANDARD.encode(fs::read(repository("docs/images").join(file)).unwrap());
        format!("[{name}]: data:image/{kind};base64,{data}\n")
    });
    let expected: String = lines.collect();
    let path = repository("src/pictures.md");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let file = fs::read_to_string(path).unwrap();
    assert!(
        file == expected,
        "src/pictures.md is out of date: UPDATE_EXPECTED=1 writes it"
    );
    assert!(file.len() <= 200_000, "the crate grows by {}", file.len());
}

// The release profile that `docs/lambda.md` recommends for users' workspaces, and that generated
// projects have.
const MANIFEST: &str = include_str!("../../Cargo.toml");
const GENERATED: &str = include_str!("../../templates/function/Cargo.toml{{nil}}");
const PAGE: &str = include_str!("../../docs/lambda.md");

/// Returns the settings between two lines.
fn settings(text: &str, from: &str, to: &str) -> BTreeSet<String> {
    let lines = text.lines().skip_while(|line| *line != from);
    let lines = lines.take_while(|line| *line != to);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Returns the profile of this workspace, as other workspaces need it.
fn expected() -> BTreeSet<String> {
    let mut expected = settings(MANIFEST, "[profile.release]", "[profile.counts]");
    // Workspace members here, covered by the profile itself; dependencies in users' workspaces.
    for name in ["", "_accounts", "_core", "_records", "_schema"] {
        assert!(expected.insert(format!("lambda_tools{name} = {{ opt-level = \"s\" }}")));
    }
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

/// The workflows of this repository and of generated projects. `.ci/long` installs what the test
/// needs, and runs it.
mod long {
    use std::{path::PathBuf, process::Command};

    use test_support::{installed, node};

    use super::*;

    fn workflows() -> Vec<PathBuf> {
        let folders = [".github/workflows", "templates/function/.github/workflows"];
        let entries = folders.map(|folder| fs::read_dir(repository(folder)).unwrap());
        let paths = entries.into_iter().flatten().map(|it| it.unwrap().path());
        paths.map(|it| it.canonicalize().unwrap()).collect()
    }

    #[test]
    #[ignore = "needs zizmor and actionlint; run .ci/long"]
    fn linters_find_nothing_in_workflows() {
        let mut zizmor = Command::new(installed("zizmor"));
        zizmor.args(["--offline", "--quiet"]).args(workflows());
        let output = zizmor.output().unwrap();
        assert!(output.status.success(), "{output:#?}");
        let mut actionlint = Command::new(node());
        actionlint.current_dir(repository("target/workflows"));
        actionlint.arg("lint.mjs").args(workflows());
        let output = actionlint.output().unwrap();
        assert!(output.status.success(), "{output:#?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    }
}
