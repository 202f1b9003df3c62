//! The messages in `docs/troubleshooting.md`, each of which a program says today.

use std::{
    fs,
    path::{Path, PathBuf},
};

use test_support::{documents::quoted, repository};

/// Where the texts of the programs are, besides the responses in `events/`, which another test
/// compares with those of the program. Claude Code's are in the test that runs it.
const SOURCES: [&str; 4] = [
    "src",
    "crates",
    "events",
    "functions/toolbox/tests/it/claude_code.rs",
];

/// Returns the messages in the first columns of the page's tables. Only the table of what others say
/// has none.
fn messages() -> Vec<String> {
    let page = fs::read_to_string(repository("docs/troubleshooting.md")).unwrap();
    let mut messages = Vec::new();
    let mut says = true;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('|') || line.starts_with("| ---") {
            continue;
        }
        let is_heading = lines.peek().is_some_and(|next| next.starts_with("| ---"));
        if is_heading {
            says = !line.starts_with("| what happens | ");
            continue;
        }
        let found = quoted(line.split(" | ").next().unwrap());
        assert_eq!(found.is_empty(), !says, "{line}");
        messages.extend(found);
    }
    messages
}

/// Appends the texts of a file, or of all files in a folder: code without comments, with each of its
/// texts on one line, and `…` for what is inserted into them.
fn add_texts(path: &Path, texts: &mut String) {
    if path.is_dir() {
        let files = fs::read_dir(path).unwrap();
        let mut files: Vec<PathBuf> = files.map(|it| it.unwrap().path()).collect();
        files.sort();
        files.iter().for_each(|file| add_texts(file, texts));
    } else if path
        .extension()
        .is_some_and(|it| it == "rs" || it == "json")
    {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().map(str::trim_start);
        for line in lines.filter(|line| !line.starts_with("//")) {
            // A text goes on in the next line after a backslash.
            let continued = line.strip_suffix('\\');
            *texts += &continued.unwrap_or(line).replace("\\\"", "\"");
            texts.extend(continued.is_none().then_some('\n'));
        }
    }
}

/// Replaces what is inserted into texts, `{}` or `{name}`, by `…`.
fn without_insertions(texts: &str) -> String {
    let mut parts = texts.split('{');
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find('}')
            .filter(|end| !part[..*end].contains([' ', '\n']));
        replaced += "…";
        replaced += end.map_or(part, |end| &part[end + 1..]);
    }
    replaced
}

#[test]
fn programs_say_every_message_of_the_page() {
    let mut texts = String::new();
    for source in SOURCES {
        add_texts(&repository(source), &mut texts);
    }
    let texts = without_insertions(&texts);
    let messages = messages();
    assert!(messages.len() > 30, "{messages:?}");
    for message in messages {
        // The code may compose a message of several texts, which begin after these.
        let parts = message.split(['…', ':', ';', '.', ',']);
        let parts = parts.map(|part| part.trim_matches([' ', '\'', '(', ')']));
        for part in parts.filter(|part| part.len() > 3) {
            assert!(texts.contains(part), "nobody says {part:?} of {message:?}");
        }
    }
}
