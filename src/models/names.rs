//! Names that every API accepts, for tools and for parameters.
//!
//! One name that an API does not accept makes it reject the whole list.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The longest name of a tool and of a parameter. Anthropic and Gemini accept tools with 128
/// characters today, but have accepted only 64.
const LONGEST: usize = 64;
/// The number of hexadecimal digits that make a shortened name unique.
const DIGITS: usize = 8;

/// The name under which a tool is listed, which is not yet `taken`: its own, if that is a letter or
/// an underscore and up to 63 letters, digits, underscores and dashes; otherwise a shortened one
/// with a hash of its id.
pub(super) fn of_tool(name: &str, id: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if is_name(name, is_allowed) && !is_taken(name) {
        return name.to_owned();
    }
    // A second hash is needed only if a tool has the name of another's first one.
    let mut seed = id.to_owned();
    loop {
        let candidate = hashed(name, &seed, is_allowed);
        if !is_taken(&candidate) {
            return candidate;
        }
        seed.push('+');
    }
}

/// The name under which a parameter is listed.
pub(super) fn of_parameter(name: &str) -> String {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if is_name(name, is_allowed) {
        name.to_owned()
    } else {
        hashed(name, name, is_allowed)
    }
}

/// Gemini: "Must start with a letter or an underscore".
fn is_name(name: &str, is_allowed: impl Fn(u8) -> bool) -> bool {
    let is_start = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.len() <= LONGEST
        && name.as_bytes().first().is_some_and(is_start)
        && name.bytes().all(is_allowed)
}

fn hashed(name: &str, seed: &str, is_allowed: impl Fn(u8) -> bool) -> String {
    let replaced = name.chars().map(|char| match u8::try_from(char) {
        Ok(byte) if is_allowed(byte) => char,
        _ => '_',
    });
    let mut hashed = String::new();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        hashed.push('_');
    }
    hashed.extend(replaced.take(LONGEST - DIGITS - 1 - hashed.len()));
    hashed.push('_');
    for byte in &Sha256::digest(seed)[..DIGITS / 2] {
        // Writing to a string does not fail.
        let _ = write!(hashed, "{byte:02x}");
    }
    hashed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_every_api_accepts_are_unchanged() {
        for name in ["Calculator_Add", "a-b", "_x", &"a".repeat(64)] {
            assert_eq!(of_tool(name, "id", |_| false), name);
        }
        for name in ["a", "query_2", "_x"] {
            assert_eq!(of_parameter(name), name);
        }
    }

    #[test]
    fn other_names_get_a_hash_of_the_id() {
        assert_eq!(of_tool("a.b", "a.b", |_| false), "a_b_2e7336dc");
        assert_ne!(
            of_tool("a.b", "1", |_| false),
            of_tool("a.b", "2", |_| false)
        );
        let taken = of_tool("a", "1", |name| name == "a");
        assert!(taken.starts_with("a_") && taken.len() == 10, "{taken}");
        let other = of_tool("a", "1", |name| name == "a" || name == taken);
        assert_ne!(other, taken);
        assert!(of_parameter("$filter").starts_with("__filter_"));
    }

    proptest! {
        #[test]
        fn every_name_becomes_valid(name in ".{0,80}", is_taken in any::<bool>()) {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            let listed = of_tool(&name, &name, |other| is_taken && other == name);
            prop_assert!(is_name(&listed, is_allowed), "{listed}");
            prop_assert!(!is_taken || listed != name);
            prop_assert!(is_name(&of_parameter(&name), |byte| byte != b'-' && is_allowed(byte)));
        }
    }
}
