//! The reason why a document cannot become tools.

use std::{collections::BTreeSet, fmt};

use lambda_tools_core::text::closest;

/// The maximum number of names in an error, and of names to compare with a misspelt one.
const MOST_NAMED: usize = 20;
const MOST_COMPARED: usize = 1000;

/// A document, or a choice of its operations, that cannot become tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenApiError(String);

impl OpenApiError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Checks that the document has what an option names. The error says what may be meant.
pub(crate) fn all_known<'n, 'k>(
    noun: &str,
    flag: &str,
    named: impl IntoIterator<Item = &'n String>,
    known: impl Iterator<Item = &'k str>,
) -> Result<(), OpenApiError> {
    let known: BTreeSet<_> = known.collect();
    let unknown = named.into_iter().find(|it| !known.contains(it.as_str()));
    let Some(name) = unknown else {
        return Ok(());
    };
    let all = || {
        let all = known.iter().take(MOST_NAMED).map(|it| format!("{it:?}"));
        all.collect::<Vec<_>>().join(", ")
    };
    let hint = match closest(name, known.iter().copied().take(MOST_COMPARED)) {
        // A document has few tags.
        Some(name) if noun == "tag" => format!("; did you mean {name:?}? It has {}", all()),
        Some(name) => format!("; did you mean {name:?}?"),
        None if known.is_empty() => String::new(),
        None => format!("; it has {}", all()),
    };
    Err(OpenApiError::new(format!(
        "the document has no {noun} {name:?} ({flag}){hint}"
    )))
}

impl fmt::Display for OpenApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenApiError {}
