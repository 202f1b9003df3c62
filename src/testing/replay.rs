//! Replaying recorded events.

use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{Path, PathBuf},
};

use json_patch::PatchOperation;
use serde_json::{Value, json};

use super::{ExpectedResponse, LambdaFunction};
use crate::{Server, text::clipped};

/// Replays every event below `folder`, sorted by name, and compares each response with its expected
/// file. `NAME.client-context.json` beside `NAME.json` is the event's client context.
///
/// ```no_run
/// # use lambda_tools::{Toolkit, testing};
/// # fn tools() -> Vec<lambda_tools::Tool> { vec![] }
/// # // In a test, this function has #[tokio::test].
/// async fn events() {
///     testing::replay("events", Toolkit::new(tools()).unwrap()).await;
/// }
/// ```
///
/// With `UPDATE_EXPECTED=1` in the environment, the expected files are written instead of compared:
/// review the diff before you commit it.
///
/// # Panics
/// With a report of all mistakes: responses that differ, an event without an expected file, an
/// expected file without an event, a folder without events.
pub async fn replay(folder: impl AsRef<Path>, server: impl Into<Server>) {
    let update = env::var_os("UPDATE_EXPECTED").is_some_and(|value| value == "1");
    let function = LambdaFunction::new(server);
    let names = match names_below(folder.as_ref()) {
        Ok(names) if !names.is_empty() => names,
        Ok(_) => panic!("there are no events below {}", folder.as_ref().display()),
        Err(error) => panic!("cannot read {}: {error}", folder.as_ref().display()),
    };
    let mut report = Vec::new();
    for name in &names {
        if let Err(mistake) = replay_one(&function, name, update).await {
            report.push(format!("{name}.json: {mistake}"));
        }
    }
    let (failed, all) = (report.len(), names.len());
    assert!(
        report.is_empty(),
        "{failed} of {all} events do not have the expected response; if the change is intended, \
         UPDATE_EXPECTED=1 writes the new ones, to be reviewed\n{}",
        report.join("\n")
    );
}

/// Returns the paths of all events below a folder, without `.json`, and those of files that belong
/// to an event, which may be missing.
fn names_below(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let text = path.to_string_lossy();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(name) = text.strip_suffix(".json") {
                let mut ends = [".expected", ".client-context", ".responses"].iter();
                let of_event = ends.find_map(|end| name.strip_suffix(end));
                names.insert(of_event.unwrap_or(name).to_owned());
            }
        }
    }
    Ok(names)
}

async fn replay_one(
    function: &LambdaFunction,
    name: &str,
    update: bool,
) -> Result<(), crate::Error> {
    let event = fs::read_to_string(format!("{name}.json")).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            "there is an expected file or a client context, but no event".to_owned()
        }
        _ => error.to_string(),
    })?;
    let client_context = fs::read_to_string(format!("{name}.client-context.json"));
    let client_context = client_context.or_else(|error| match error.kind() {
        // Most events have none.
        io::ErrorKind::NotFound => Ok(String::new()),
        _ => Err(error),
    })?;
    let response = function.invoke_with_context(&event, &client_context);
    let actual = LambdaFunction::response_in(&response.await?)?;
    let file = PathBuf::from(format!("{name}.expected.json"));
    if update {
        return Ok(fs::write(file, format!("{:#}\n", json!(actual)))?);
    }
    if !file.exists() {
        return Err(format!("{} is missing; UPDATE_EXPECTED=1 writes it", file.display()).into());
    }
    let expected: ExpectedResponse = serde_json::from_str(&fs::read_to_string(file)?)?;
    difference(&expected, actual).map_or(Ok(()), |it| Err(it.into()))
}

/// The maximum number of places that a report shows.
const MAX_PLACES: usize = 20;

/// Compared headers that an expected file may leave out: all others change the meaning of a
/// response, so an unexpected one is a difference.
const MAY_BE_LEFT_OUT: [&str; 3] = ["content-encoding", "content-type", "oxp-version"];

/// Returns the differences between a response and the expected one.
fn difference(expected: &ExpectedResponse, mut actual: ExpectedResponse) -> Option<String> {
    let is_compared =
        |name: &str| expected.headers.contains_key(name) || !MAY_BE_LEFT_OUT.contains(&name);
    actual.headers.retain(|name, _| is_compared(name));
    let mut lines = differences("", &json!(expected), &json!(actual));
    let more = lines.len().saturating_sub(MAX_PLACES);
    lines.truncate(MAX_PLACES);
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    (!lines.is_empty()).then(|| format!("\n{}", lines.join("\n")))
}

/// The maximum length, in bytes, of a value in a report.
const LONGEST_SHOWN: usize = 200;

/// The number of bytes that a report shows of the part that two long values have in common.
const COMMON_SHOWN: usize = 40;

/// Returns the differences between two values, as text: each place as a JSON pointer below
/// `pointer`, with both values. A text that contains JSON is compared as JSON.
fn differences(pointer: &str, expected: &Value, actual: &Value) -> Vec<String> {
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
            found.push(at_place(&place, before, after));
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

fn at_place(place: &str, expected: Option<&Value>, actual: Option<&Value>) -> String {
    let text = |value: Option<&Value>| value.map_or("(absent)".into(), Value::to_string);
    let (expected, actual) = (text(expected), text(actual));
    let pairs = expected.bytes().zip(actual.bytes());
    let common = pairs.take_while(|(one, other)| one == other).count();
    let is_short = expected.len().max(actual.len()) <= LONGEST_SHOWN;
    let start = if is_short {
        0
    } else {
        common.saturating_sub(COMMON_SHOWN)
    };
    let start = expected.floor_char_boundary(start);
    let shown = |text: &str| {
        let omitted = if start > 0 { "…" } else { "" };
        format!("{omitted}{}", clipped(&text[start..], LONGEST_SHOWN))
    };
    let (expected, actual) = (shown(&expected), shown(&actual));
    format!("  {place}\n    expected: {expected}\n    actual:   {actual}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn between(expected: Value, actual: Value) -> Option<String> {
        let response = |body| ExpectedResponse {
            status: 200,
            headers: BTreeMap::new(),
            body,
        };
        difference(&response(expected), response(actual))
    }

    #[test]
    fn a_changed_list_is_shown_as_pointers_with_both_values() {
        let tool = |name: &str, title: &str| json!({"name": name, "title": title, "a/b~": "x".repeat(4800)});
        let all =
            |title| json!({"tools": [tool("a", "A"), tool("b", title), tool("c", "C")], "n": 1});
        let mut fewer = all("B");
        fewer["tools"].as_array_mut().unwrap().pop();
        let long = "x".repeat(4800) + "y" + &"z".repeat(4800);
        let mut longer = all("B");
        longer["tools"][2]["a/b~"] = long.into();
        for (actual, expected) in [
            (all("B"), ""),
            (
                all("Z"),
                "  /body/tools/1/title\n    expected: \"B\"\n    actual:   \"Z\"",
            ),
            (
                json!({"tools": all("B")["tools"], "m": 1}),
                "  /body/m\n    expected: (absent)\n    actual:   1\n  /body/n\n    expected: 1\n    actual:   (absent)",
            ),
            (json!(7), "  /body\n    expected: {"),
            (fewer, "  /body/tools/2\n    expected: {"),
            (longer, "  /body/tools/2/a~1b~0\n    expected: …xxx"),
        ] {
            let difference = between(all("B"), actual).unwrap_or_default();
            assert!(
                difference.trim_start_matches('\n').starts_with(expected),
                "{difference}"
            );
            assert_eq!(difference.is_empty(), expected.is_empty(), "{difference}");
            assert!(difference.len() < 700, "{difference}");
        }
    }

    /// The expected and the actual headers, and what is said of them. An expected file may leave some
    /// out, but not have others.
    const HEADERS: &str = r#"[
        [{"retry-after": "1"}, {"retry-after": "1"}, null],
        [{}, {"retry-after": "1"}, "/headers/retry-after\n    expected: (absent)\n    actual:   \"1\""],
        [{"retry-after": "1"}, {}, "/headers/retry-after\n    expected: \"1\"\n    actual:   (absent)"],
        [{"retry-after": "1"}, {"retry-after": "2"}, "expected: \"1\"\n    actual:   \"2\""],
        [{}, {"content-type": "application/json", "content-encoding": "gzip", "oxp-version": "1.0"}, null],
        [{"content-type": "text/plain"}, {"content-type": "application/json"}, "/headers/content-type"]
    ]"#;

    #[test]
    fn a_header_that_changes_the_meaning_is_a_difference_on_either_side() {
        type Headers = BTreeMap<String, String>;
        let rows: Vec<(Headers, Headers, Option<String>)> = serde_json::from_str(HEADERS).unwrap();
        for (expected, actual, says) in rows {
            let response = |headers: &Headers| ExpectedResponse {
                status: 200,
                headers: headers.clone(),
                body: Value::Null,
            };
            let difference = difference(&response(&expected), response(&actual));
            let is_said = match (&difference, says) {
                (Some(text), Some(says)) => text.contains(&says),
                (difference, says) => difference.is_none() && says.is_none(),
            };
            assert!(is_said, "{expected:?} {actual:?}: {difference:?}");
        }
    }

    #[test]
    fn json_in_a_text_is_compared_as_json_and_a_report_is_bounded() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let compare = |expected: &str, actual: &str| between(text(expected), text(actual));
        let changed = compare(r#"{"a": [1, 2]}"#, r#"{"a": [1, 3]}"#).unwrap();
        assert_eq!(
            changed,
            "\n  /body/content/0/text/a/1\n    expected: 2\n    actual:   3"
        );
        // Equal as JSON, but not the same text.
        let spaced = compare("[1, 2]", "[1,2]").unwrap();
        assert_eq!(
            spaced,
            "\n  /body/content/0/text\n    expected: \"[1, 2]\"\n    actual:   \"[1,2]\""
        );
        assert_eq!(compare("[1, 2]", "[1, 2]"), None);
        let many = |first: usize| (first..first + 1000).collect::<Value>();
        let report = between(many(0), many(5000)).unwrap();
        assert!(report.ends_with("  and 980 more"), "{report}");
        assert!(report.lines().count() < 70, "{report}");
    }
}
