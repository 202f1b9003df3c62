//! Parsing of JSON and YAML.
//!
//! Documents come from others: YAML gets limits for what aliases expand to, and the types of YAML
//! 1.2, as OpenAPI demands. With those of YAML 1.1, the names `y` and `on` would be booleans.

use serde_json::Value;
use serde_saphyr::{Options, budget, options};

use crate::{Error, source};

/// The maximum number of values in YAML; GitHub's document, one of the largest, has half a million.
/// The maximum depth stays 64, of which such documents use 25.
const MOST_NODES: usize = 2_000_000;

/// Reads a file or a URL.
pub(crate) fn read(source: &str) -> Result<Value, Error> {
    parse(&source::read(source)?).map_err(|error| format!("{source} is not valid: {error}").into())
}

/// Reads JSON or YAML, whose objects may also begin with a brace.
pub(crate) fn parse(text: &str) -> Result<Value, Error> {
    let text = text.trim_start_matches('\u{feff}');
    let json = serde_json::from_str(text);
    if text.trim_start().starts_with('{') && json.is_ok() {
        return Ok(json?);
    }
    serde_saphyr::from_str_with_options(text, yaml()).map_err(|error| match json {
        Err(json) if text.trim_start().starts_with(['{', '[']) => json.into(),
        _ => without_advice(&error.to_string()).into(),
    })
}

/// Returns an error of the parser without what it advises programmers.
fn without_advice(error: &str) -> String {
    let start = error.find(", set ").or(error.find("; use "));
    let (text, rest) = error.split_at(start.unwrap_or(error.len()));
    text.to_owned() + rest.find(" at line ").map_or("", |place| &rest[place..])
}

fn yaml() -> Options {
    options! {
        budget: budget! {
            max_events: 2 * MOST_NODES,
            max_nodes: MOST_NODES,
            // Many aliases of one anchor are usual; what they expand to counts as values.
            enforce_alias_anchor_ratio: false,
        },
        leading_zero_numbers_as_strings: true,
        null_as_string: true,
        strict_booleans: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use serde_json::json;

    use super::*;

    const TYPES: &str = r#"
200: ok => {"200": "ok"}
{null: a, true: b, 1.50: c} => {"null": "a", "true": "b", "1.50": "c"}
[y, n, on, off, yes, no] => ["y", "n", "on", "off", "yes", "no"]
[true, False, ~, null] => [true, false, null, null]
[2020-01-01, 2020-01-01T00:00:00Z, 12:30:45] => ["2020-01-01", "2020-01-01T00:00:00Z", "12:30:45"]
[18446744073709551615, 1e3, -9223372036854775808] => [18446744073709551615, 1000.0, -9223372036854775808]
[18446744073709551616] => [18446744073709551616.0]
[017, 1_000, 1.2.3] => ["017", "1_000", "1.2.3"]
{a: &a {b: 1}, c: {<<: *a, d: 2}} => {"a": {"b": 1}, "c": {"b": 1, "d": 2}}
{200: [a, b]} => {"200": ["a", "b"]}
"#;

    #[test]
    fn yaml_has_the_types_of_json() {
        for row in TYPES.lines().filter(|row| !row.is_empty()) {
            let (text, expected) = row.split_once(" => ").unwrap();
            let expected: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
        assert_eq!(parse("\u{feff}{\"a\": 1}").unwrap(), json!({"a": 1}));
    }

    #[test]
    fn ambiguous_yaml_is_an_error() {
        let several = "multiple YAML documents detected at line ";
        for (text, expected) in [
            ("a: 1\na: 2", "duplicate mapping key: a at line "),
            ("a: 1\n---\nb: 2", several),
            ("{\"a\": {,}}", "key must be a string"),
            ("a: .inf", "non-finite float"),
            ("a: &x [*x]", "recursive references"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn depth_is_limited() {
        let nested = |depth| format!("a: {}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(60)).is_ok());
        for depth in [70, 100_000] {
            assert!(parse(&nested(depth)).is_err());
        }
    }

    /// Each line has nine times the values of the one before.
    #[test]
    fn aliases_do_not_fill_the_memory() {
        let mut text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for level in 1..20 {
            let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
            writeln!(text, "a{level}: &a{level} [{aliases}]").unwrap();
        }
        assert!(parse(&text).is_err());
        let long = "x".repeat(1 << 20);
        let aliases = vec!["*a"; 1000].join(", ");
        assert!(parse(&format!("a: &a {long}\nb: [{aliases}]")).is_err());
    }
}
