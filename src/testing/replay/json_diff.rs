//! The differences between two JSON values.
//!
//! A list of tools takes thousands of characters; only the places where two lists differ are shown.

use serde_json::Value;

use crate::text::clipped;

/// The maximum length, in bytes, of a value in a report.
const LONGEST_SHOWN: usize = 200;

/// The number of bytes that a report shows of the part that two long values have in common.
const COMMON_SHOWN: usize = 40;

/// A place where two values differ, as a JSON pointer, and the text of each.
pub(super) struct JsonDifference {
    pub(super) pointer: String,
    pub(super) expected: String,
    pub(super) actual: String,
}

/// Returns the differences between two values. A text that contains JSON is compared as JSON.
pub(super) fn differences(expected: &Value, actual: &Value) -> Vec<JsonDifference> {
    let mut found = Vec::new();
    compare("", Some(expected), Some(actual), &mut found);
    found
}

fn compare(
    pointer: &str,
    expected: Option<&Value>,
    actual: Option<&Value>,
    found: &mut Vec<JsonDifference>,
) {
    match (expected, actual) {
        _ if expected == actual => {}
        (Some(Value::Object(expected)), Some(Value::Object(actual))) => {
            let added = actual.keys().filter(|it| !expected.contains_key(*it));
            for name in expected.keys().chain(added) {
                let step = name.replace('~', "~0").replace('/', "~1");
                let pointer = format!("{pointer}/{step}");
                compare(&pointer, expected.get(name), actual.get(name), found);
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(actual))) => {
            let (start, expected, actual) = changed_part(expected, actual);
            for index in 0..expected.len().max(actual.len()) {
                let pointer = format!("{pointer}/{}", start + index);
                compare(&pointer, expected.get(index), actual.get(index), found);
            }
        }
        _ => match (json_in(expected), json_in(actual)) {
            (Some(expected), Some(actual)) if expected != actual => {
                compare(pointer, Some(&expected), Some(&actual), found);
            }
            _ => found.push(difference(pointer, expected, actual)),
        },
    }
}

/// Returns the items between those with which both lists begin and those with which both end.
fn changed_part<'a>(
    expected: &'a [Value],
    actual: &'a [Value],
) -> (usize, &'a [Value], &'a [Value]) {
    let is_same = |(one, other): &(&Value, &Value)| one == other;
    let start = expected.iter().zip(actual).take_while(is_same).count();
    let (expected, actual) = (&expected[start..], &actual[start..]);
    let from_end = expected.iter().rev().zip(actual.iter().rev());
    let end = from_end.take_while(is_same).count();
    let (expected_end, actual_end) = (expected.len() - end, actual.len() - end);
    (start, &expected[..expected_end], &actual[..actual_end])
}

/// Returns the object or the list in a text.
fn json_in(text: Option<&Value>) -> Option<Value> {
    let value: Value = serde_json::from_str(text?.as_str()?).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

fn difference(pointer: &str, expected: Option<&Value>, actual: Option<&Value>) -> JsonDifference {
    let text = |value: Option<&Value>| value.map_or("(absent)".into(), Value::to_string);
    let (expected, actual) = (text(expected), text(actual));
    let pairs = expected.char_indices().zip(actual.chars());
    let common = pairs.take_while(|((_, one), other)| one == other).last();
    let start = match expected.len().max(actual.len()) {
        ..=LONGEST_SHOWN => 0,
        _ => common.map_or(0, |((at, _), _)| at.saturating_sub(COMMON_SHOWN)),
    };
    let start = expected.floor_char_boundary(start);
    let shown = |text: &str| {
        let omitted = if start > 0 { "…" } else { "" };
        format!("{omitted}{}", clipped(&text[start..], LONGEST_SHOWN))
    };
    JsonDifference {
        pointer: pointer.to_owned(),
        expected: shown(&expected),
        actual: shown(&actual),
    }
}
