//! The error of an invalid toolkit.

use std::fmt;

/// All mistakes in a toolkit's definitions, one line each.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildError {
    problems: Vec<String>,
}

impl BuildError {
    pub(crate) fn unless_empty(problems: Vec<String>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self { problems })
        }
    }

    /// Returns the mistakes, each with its tool and the line that defines it.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tools cannot be served:")?;
        self.problems
            .iter()
            .try_for_each(|problem| write!(f, "\n  - {problem}"))
    }
}

/// The same as `Display`: `main` prints its error with `Debug`.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for BuildError {}
