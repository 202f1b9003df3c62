//! Tool ids: `Toolkit.Tool@1.0.0`.
//!
//! Ids are parsed once, on entry, into types that cannot hold anything the specification's grammar
//! forbids; no code after the decoder compares strings with `@` in them.

use std::{fmt, str::FromStr, sync::Arc};

use semver::Version;

/// The id a tool is registered under: `Toolkit.Tool@x.y.z`, always with its full version.
///
/// OXP 1.0, Tool Definition, `id`: `Toolkit` and `Tool` are letters, digits and underscores,
/// `x`, `y` and `z` are integers without leading zeros.
///
/// ```
/// # use lambda_tools_core as lambda_tools;
/// use lambda_tools::ToolId;
///
/// let id: ToolId = "Calculator.Add@1.0.0".parse()?;
/// assert_eq!(id.qualified(), "Calculator.Add");
/// assert_eq!(id.version().to_string(), "1.0.0");
/// assert!("Calculator.Add@1".parse::<ToolId>().is_err());
/// # Ok::<(), lambda_tools::IdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolId {
    /// Shared with the index of tools by name.
    qualified: Arc<str>,
    version: Version,
}

impl ToolId {
    /// Returns `Toolkit.Tool`, without the version.
    #[must_use]
    pub fn qualified(&self) -> &str {
        &self.qualified
    }

    /// Returns `Tool`, without the toolkit and the version.
    #[must_use]
    pub fn name(&self) -> &str {
        self.qualified.split('.').next_back().unwrap_or_default()
    }

    /// Returns `Toolkit.Tool` without a copy, for what outlives the toolkit.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.qualified)
    }

    /// Returns the version after the `@`.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.version
    }
}

impl FromStr for ToolId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let version = text.split_once('@').map(|(_, version)| version);
        let is_full = version.is_some_and(|it| it.contains('.'));
        match text.parse() {
            Ok(Selector {
                qualified,
                version: Some(version),
            }) if is_full => Ok(Self { qualified, version }),
            Err(TOO_LARGE) => Err(TOO_LARGE),
            _ => Err(NOT_IN_FULL),
        }
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.qualified, self.version)
    }
}

/// The tool that a caller requests: `Toolkit.Tool`, `Toolkit.Tool@1` or `Toolkit.Tool@1.0.0`.
///
/// OXP 1.0, Tool Version Resolution: `@x.y.z` is that version, `@x` is exactly `x.0.0`, and no
/// version means the newest one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// `Toolkit.Tool`.
    pub qualified: Arc<str>,
    /// The version; `None` for the newest one.
    pub version: Option<Version>,
}

impl FromStr for Selector {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let (qualified, version) = match text.split_once('@') {
            Some((qualified, version)) => (qualified, Some(parse_version(version)?)),
            None => (text, None),
        };
        if !is_qualified(qualified) {
            return Err(GRAMMAR);
        }
        let qualified = qualified.into();
        Ok(Self { qualified, version })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.qualified),
            None => f.write_str(&self.qualified),
        }
    }
}

/// Returns true for two words with a dot between them.
fn is_qualified(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_letter);
    text.split_once('.')
        .is_some_and(|(toolkit, tool)| is_word(toolkit) && is_word(tool))
}

/// Parses a version of one number or three.
fn parse_version(text: &str) -> Result<Version, IdError> {
    let numbers = text.as_bytes().split(|byte| *byte == b'.');
    let mut numbers = numbers.map(parse_number);
    let mut next = || numbers.next().transpose();
    match (next()?, next()?, next()?, next()?) {
        (Some(major), None, None, None) => Ok(Version::new(major, 0, 0)),
        (Some(major), Some(minor), Some(patch), None) => Ok(Version::new(major, minor, patch)),
        _ => Err(GRAMMAR),
    }
}

/// Parses a number without leading zeros: Semantic Versioning 2.0.0, section 2.
fn parse_number(digits: &[u8]) -> Result<u64, IdError> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_number || (digits[0] == b'0' && digits.len() > 1) {
        return Err(GRAMMAR);
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add((digit - b'0').into())
    });
    number.ok_or(TOO_LARGE)
}

/// The reason why a text is not a tool id. The message describes a valid id and never repeats the
/// text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdError(&'static str);

const GRAMMAR: IdError = IdError(
    "a tool id looks like Toolkit.Tool, Toolkit.Tool@1 or Toolkit.Tool@1.0.0 (letters, digits and \
     underscores; version numbers without leading zeros)",
);
const TOO_LARGE: IdError = IdError("a version number of the tool id is too large");
const NOT_IN_FULL: IdError = IdError(
    "a tool is registered as Toolkit.Tool@1.0.0: two names of letters, digits and underscores \
     separated by a dot, and the full version without leading zeros",
);

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for IdError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_notations_of_the_specification() {
        for (text, qualified, version) in [
            ("Calculator.Add", "Calculator.Add", None),
            ("Calculator.Add@1", "Calculator.Add", Some("1.0.0")),
            ("A.B@10.20.30", "A.B", Some("10.20.30")),
            ("_._@0", "_._", Some("0.0.0")),
        ] {
            let selector: Selector = text.parse().unwrap();
            let expected: Option<Version> = version.map(|it| it.parse().unwrap());
            assert_eq!(&*selector.qualified, qualified);
            assert_eq!(selector.version, expected);
        }
    }

    #[test]
    fn invalid_ids_are_rejected() {
        let texts = ". @ A A. .B A.B.C A.B@ A.B@1.2 A.B@1.2.3.4 A.B@v1 A.B@01.0.0 A.B@00 A.B@1.0.0-rc1 \
                     A.B@1.0.0+b A.B@1@2 A-B.C A.Ü A.B@-1 A.B@+1 A.B@1. A.B@.1 A.B@١";
        let spaced = ["", "A.B ", "A.B\n", "A.B@1.0.0\n"];
        for text in texts.split_whitespace().chain(spaced) {
            assert_eq!(text.parse::<Selector>(), Err(GRAMMAR), "{text:?}");
            assert!(text.parse::<ToolId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn version_numbers_that_overflow_have_their_own_error() {
        let text = "A.B@1.99999999999999999999.0";
        assert_eq!(text.parse::<Selector>(), Err(TOO_LARGE));
        let largest = format!("A.B@{}", u64::MAX);
        assert!(largest.parse::<Selector>().is_ok());
    }

    #[test]
    fn registration_requires_the_full_version() {
        for text in ["A.B", "A.B@1"] {
            assert_eq!(text.parse::<ToolId>(), Err(NOT_IN_FULL));
        }
        let id: ToolId = "A.B@1.2.3".parse().unwrap();
        assert_eq!(id.to_string(), "A.B@1.2.3");
    }
}
