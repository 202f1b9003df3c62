//! Tool ids and version selectors: their text is the same after parsing, versions are those of the
//! crate `semver`, and a selector selects what the specification says.

use std::sync::{Arc, LazyLock};

use lambda_tools::{Failure, Tool, ToolId, Toolkit, fuzzing};
use semver::Version;
use serde_json::{Value, json};

use crate::{MemoryBound, bounded};

/// Parsing copies a text a few times; the list of similar names is small.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 64,
    base: 64 << 10,
};

const IDS: [&str; 9] = [
    "A.B@1.0.0",
    "A.B@1.2.0",
    "A.B@2.0.0",
    "A.B@10.0.0",
    "A.B@0.0.0",
    "A.C@0.1.0",
    "_._@18446744073709551615.0.0",
    "Calculator.Add@1.0.0",
    "Calculator.Add@3.0.1",
];

static TOOLKIT: LazyLock<Arc<Toolkit>> = LazyLock::new(|| {
    async fn nothing(_: Value) -> Result<Value, Failure> {
        Ok(Value::Null)
    }
    let open = || json!({"type": "object"});
    let tools = IDS.map(|id| Tool::dynamic(id, "Does nothing.", open(), json!({}), nothing));
    Arc::new(Toolkit::new(tools).expect("the tools are valid"))
});

pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    LazyLock::force(&TOOLKIT);
    bounded(data.len(), BOUND, || check(text));
}

fn check(text: &str) {
    let expected = reference(text);
    let actual = fuzzing::selector(text);
    assert_eq!(actual.is_some(), expected.is_some(), "{text:?}");
    let full: Option<ToolId> = text.parse().ok();
    if let (Some((qualified, version, shown)), Some((its_name, its_version))) = (actual, &expected)
    {
        assert_eq!(qualified, *its_name);
        assert_eq!(version, its_version.as_ref().map(ToString::to_string));
        let again = fuzzing::selector(&shown);
        assert_eq!(again, Some((qualified, version, shown.clone())), "{text:?}");
    }
    let is_full = text.matches('.').count() == 3 && expected.is_some();
    assert_eq!(full.is_some(), is_full, "{text:?}");
    if let Some(id) = full {
        assert_eq!(id.to_string(), text);
    }
    let selected = fuzzing::resolved(&TOOLKIT, text);
    assert_eq!(selected, expected.and_then(selected_by), "{text:?}");
}

/// OXP 1.0, Tool Definition, `id`, and Tool Version Resolution.
fn reference(text: &str) -> Option<(String, Option<Version>)> {
    let (name, version) = match text.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    let words: Vec<_> = name.split('.').collect();
    let is_word = |word: &&str| {
        let is_letter = |it: char| it.is_ascii_alphanumeric() || it == '_';
        !word.is_empty() && word.chars().all(is_letter)
    };
    if words.len() != 2 || !words.iter().all(is_word) {
        return None;
    }
    let version = match version {
        None => None,
        Some(text) if text.contains('.') => Some(Version::parse(text).ok()?),
        Some(text) => Some(Version::parse(&format!("{text}.0.0")).ok()?),
    };
    let is_plain = |it: &Version| it.pre.is_empty() && it.build.is_empty();
    version
        .as_ref()
        .is_none_or(is_plain)
        .then(|| (name.to_owned(), version))
}

/// The tool that the specification says: the newest one, or the one with the exact version.
fn selected_by((name, version): (String, Option<Version>)) -> Option<String> {
    let versions = IDS.iter().filter_map(|id| {
        let (its_name, version) = id.split_once('@')?;
        (its_name == name).then(|| Version::parse(version).expect("the ids are valid"))
    });
    let selected = match version {
        None => versions.max(),
        Some(version) => versions.into_iter().find(|it| *it == version),
    };
    selected.map(|version| format!("{name}@{version}"))
}
