//! The README and the pages below `docs/`: their blocks are tested, and their links lead somewhere.

use std::{collections::BTreeSet, fs};

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
        assert!(path != "README.md" || text.lines().count() <= 180);
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
