//! The differences between two JSON values.
//!
//! A list of tools takes thousands of characters; only the places where two lists differ are shown.

use json_patch::PatchOperation;
use serde_json::Value;

use crate::text::clipped;

/// The maximum length, in bytes, of a value in a report.
const LONGEST_SHOWN: usize = 200;

/// The number of bytes that a report shows of the part that two long values have in common.
const COMMON_SHOWN: usize = 40;

/// Returns the differences between two values, as text: each place as a JSON pointer below
/// `pointer`, with both values. A text that contains JSON is compared as JSON.
pub(super) fn differences(pointer: &str, expected: &Value, actual: &Value) -> Vec<String> {
    let mut rest = expected.clone();
    let mut found = Vec::new();
    for operation in json_patch::diff(expected, actual).0 {
        let path = operation.path().as_str();
        let (before, after) = match &operation {
            PatchOperation::Add(it) => (None, Some(&it.value)),
            PatchOperation::Replace(it) => (rest.pointer(path), Some(&it.value)),
            _ => (rest.pointer(path), None),
        };
        let place = format!("{pointer}{path}");
        let inner = match (json_in(before), json_in(after)) {
            (Some(before), Some(after)) => differences(&place, &before, &after),
            _ => Vec::new(),
        };
        if inner.is_empty() {
            found.push(difference(&place, before, after));
        } else {
            found.extend(inner);
        }
        // Removing an element from a list shifts the positions of the later ones.
        json_patch::patch(&mut rest, &[operation]).expect("an operation of the same patch");
    }
    found
}

/// Returns the object or the list in a text.
fn json_in(text: Option<&Value>) -> Option<Value> {
    let value: Value = serde_json::from_str(text?.as_str()?).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

fn difference(place: &str, expected: Option<&Value>, actual: Option<&Value>) -> String {
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
    let (expected, actual) = (shown(&expected), shown(&actual));
    format!("  {place}\n    expected: {expected}\n    actual:   {actual}")
}
