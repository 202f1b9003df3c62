//! The pages of the documentation, which tests compare with the code.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::repository;

/// Returns the rows of the table about operations whose first column has this heading.
pub fn table(heading: &str) -> Vec<Vec<String>> {
    let pages = ["production", "lambda", "costs"];
    let text =
        pages.map(|page| fs::read_to_string(repository(&format!("docs/{page}.md"))).unwrap());
    let text = text.join("\n");
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

/// Returns the words between backquotes.
pub fn quoted(cell: &str) -> Vec<String> {
    let words = cell.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

/// Returns the README and the pages below `docs/`, each with its path and its text.
pub fn pages() -> Vec<(String, String)> {
    let docs = fs::read_dir(repository("docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let markdown = names.filter_map(|name| Some(format!("docs/{}.md", name.strip_suffix(".md")?)));
    let mut paths: Vec<_> = markdown.collect();
    paths.push("README.md".into());
    paths.sort();
    let read = |path: String| {
        let text = fs::read_to_string(repository(&path)).unwrap();
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// A fenced block of a page.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The page and the line on which the block begins.
    pub place: String,
    /// The text after the opening fence, such as `rust,no_run`.
    pub language: String,
    /// The lines, without the indentation of the fence.
    pub text: String,
    /// The reason why no test runs or compiles the block: `<!-- not run: REASON -->` on the line
    /// before it.
    pub mark: Option<String>,
}

/// Returns the fenced blocks of a page.
pub fn blocks(path: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(Block, usize, String)> = None;
    let mut previous = "";
    for (number, line) in text.lines().enumerate() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        match &mut open {
            Some((_, _, fence)) if content.trim_end() == fence => {
                blocks.extend(open.take().map(|(block, ..)| block));
            }
            Some((block, indent, _)) => {
                block.text += line.get(*indent..).unwrap_or_default();
                block.text += "\n";
            }
            None if content.starts_with("```") || content.starts_with("~~~") => {
                let language = content.trim_start_matches(['`', '~']);
                let fence = content[..content.len() - language.len()].to_owned();
                let block = Block {
                    place: format!("{path}:{}", number + 1),
                    language: language.trim().to_owned(),
                    text: String::new(),
                    mark: mark_in(previous),
                };
                open = Some((block, indent, fence));
            }
            None => {}
        }
        previous = line;
    }
    assert!(open.is_none(), "{path}: a block is not closed");
    blocks
}

fn mark_in(line: &str) -> Option<String> {
    let reason = line.trim().strip_prefix("<!-- not run: ")?;
    Some(reason.strip_suffix(" -->")?.trim().to_owned())
}

/// Returns true if a response has all the fields in a page. The text `…` matches any value.
pub fn matches(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected.iter().all(|(name, value)| {
            let actual = actual.get(name);
            actual.is_some_and(|actual| matches(value, actual))
        }),
        (Value::Array(expected), Value::Array(actual)) => {
            let mut pairs = expected.iter().zip(actual);
            expected.len() == actual.len() && pairs.all(|(one, other)| matches(one, other))
        }
        (Value::String(text), _) if text == "…" => true,
        _ => expected == actual,
    }
}

/// The address in the pages, in place of which tests use a free port.
pub const ADDRESS: &str = "http://127.0.0.1:9000";

/// The address of a deployed function in the pages.
pub const DEPLOYED: &str = "https://tools.example";

/// The page whose commands a test of the toolbox runs in one shell. It compares what they print with
/// the texts after them.
pub const FIRST_DEPLOYMENT: &str = "docs/first-deployment.md";

/// The pages whose commands a test of their own types as they are printed. It compares what they print
/// with the blocks after them.
pub const TYPED: [&str; 6] = [
    "README.md",
    FIRST_DEPLOYMENT,
    "docs/agentcore.md",
    "docs/guide-api.md",
    "docs/guide-tool.md",
    "docs/production.md",
];

/// Returns true if a test of its own types the commands of a page as they are printed.
pub fn is_typed(path: &str) -> bool {
    TYPED.contains(&path)
}

/// Returns true if an output has the expected lines. In both, space around the text does not count. A
/// line `…` matches any number of lines, and elsewhere `…` matches any text of a line.
pub fn is_expected(expected: &str, actual: &str) -> bool {
    let [expected, actual] = [expected, actual].map(|text| text.trim().lines().collect::<Vec<_>>());
    matches_lines(&expected, &actual)
}

fn matches_lines(expected: &[&str], actual: &[&str]) -> bool {
    let Some((line, others)) = expected.split_first() else {
        return actual.is_empty();
    };
    if *line == "…" {
        return (0..=actual.len()).any(|skipped| matches_lines(others, &actual[skipped..]));
    }
    let Some((first, rest)) = actual.split_first() else {
        return false;
    };
    matches_line(line, first) && matches_lines(others, rest)
}

/// Returns true if a line is the expected one, in which `…` matches any text.
fn matches_line(expected: &str, actual: &str) -> bool {
    let parts: Vec<_> = expected.split('…').collect();
    let (first, rest) = parts.split_first().unwrap();
    let Some(mut left) = actual.strip_prefix(first) else {
        return false;
    };
    let Some((last, middle)) = rest.split_last() else {
        return left.is_empty();
    };
    for part in middle {
        let Some((_, after)) = left.split_once(part) else {
            return false;
        };
        left = after;
    }
    left.ends_with(last)
}

/// Checks that a test runs or compiles a block, or that a mark says why none does. `previous` is the
/// block before it on the same page.
///
/// # Errors
/// The reason why no test covers the block.
pub fn covered(block: &Block, previous: Option<&Block>) -> Result<(), String> {
    if let Some(reason) = &block.mark {
        let is_explained = (!reason.is_empty()).then_some(());
        return is_explained.ok_or("the mark has no reason".into());
    }
    let mut words = block.language.split(',');
    let is_console = |block: &&Block| block.language == "console" && block.mark.is_none();
    match words.next().unwrap_or_default() {
        // A documentation test, because a page is part of the library's documentation.
        "rust" => match words.find(|word| !["no_run", "test_harness"].contains(word)) {
            Some(word) => Err(format!("`{word}` keeps the block from being compiled")),
            None => Ok(()),
        },
        // Commands are typed as they are printed, and what they print is compared with the block right
        // after them; Python is run by the toolbox's tests.
        "console" | "python" => Ok(()),
        "json" | "text" => match previous.filter(is_console) {
            Some(_) => Ok(()),
            None => Err("it is not what the commands right before it print".into()),
        },
        "toml" => is_profile(block),
        language => Err(format!("no test covers the language `{language}`")),
    }
}

/// Checks a part of the release profile, which another test compares as a whole.
fn is_profile(block: &Block) -> Result<(), String> {
    let manifest = fs::read_to_string(repository("Cargo.toml")).unwrap();
    let (_, profile) = manifest.split_once("[profile.release]").unwrap();
    let mut known: BTreeSet<_> = profile.lines().collect();
    known.extend([
        "[profile.release]",
        r#"lambda_tools = { opt-level = "s" }"#,
        r#"lambda_tools_accounts = { opt-level = "s" }"#,
        r#"lambda_tools_core = { opt-level = "s" }"#,
        r#"lambda_tools_records = { opt-level = "s" }"#,
        r#"lambda_tools_schema = { opt-level = "s" }"#,
    ]);
    match block.text.lines().find(|line| !known.contains(line)) {
        Some(line) => Err(format!("`{line}` is not in the release profile")),
        None => Ok(()),
    }
}
