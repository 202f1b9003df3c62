//! Replaying recorded events.

mod json_diff;

use std::{
    env, fmt, fs, io,
    path::{Path, PathBuf},
};

use super::{ExpectedResponse, LambdaFunction};
use crate::Server;

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
    let pairs = match pairs_below(folder.as_ref()) {
        Ok(pairs) if !pairs.is_empty() => pairs,
        Ok(_) => panic!("there are no events below {}", folder.as_ref().display()),
        Err(error) => panic!("cannot read {}: {error}", folder.as_ref().display()),
    };
    let mut report = Vec::new();
    for pair in &pairs {
        if let Err(mistake) = replay_one(&function, pair, update).await {
            report.push(format!("{}: {mistake}", pair.event.display()));
        }
    }
    let (failed, all) = (report.len(), pairs.len());
    assert!(
        report.is_empty(),
        "{failed} of {all} events do not have the expected response; if the change is intended, \
         UPDATE_EXPECTED=1 writes the new ones, to be reviewed\n{}",
        report.join("\n")
    );
}

/// An event file and its expected file, either of which may be missing.
struct Pair {
    event: PathBuf,
    /// The client context of the event, which most events do not have.
    client_context: PathBuf,
    expected: PathBuf,
}

fn pairs_below(folder: &Path) -> io::Result<Vec<Pair>> {
    let mut names = std::collections::BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let text = path.to_string_lossy();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(name) = text.strip_suffix(".json") {
                let ends = [".expected", ".client-context", ".responses"];
                let name = ends
                    .iter()
                    .find_map(|end| name.strip_suffix(end))
                    .unwrap_or(name);
                names.insert(name.to_owned());
            }
        }
    }
    let pair = |name: String| Pair {
        event: format!("{name}.json").into(),
        client_context: format!("{name}.client-context.json").into(),
        expected: format!("{name}.expected.json").into(),
    };
    Ok(names.into_iter().map(pair).collect())
}

async fn replay_one(
    function: &LambdaFunction,
    pair: &Pair,
    update: bool,
) -> Result<(), crate::Error> {
    if !pair.event.exists() {
        return Err("there is an expected file or a client context, but no event".into());
    }
    let event = fs::read_to_string(&pair.event)?;
    let client_context = pair.client_context.exists();
    let client_context = client_context.then(|| fs::read_to_string(&pair.client_context));
    let client_context = client_context.transpose()?.unwrap_or_default();
    let response = function
        .invoke_with_context(&event, &client_context)
        .await?;
    let actual = LambdaFunction::response_in(&response)?;
    if update {
        return Ok(fs::write(
            &pair.expected,
            format!("{:#}\n", serde_json::json!(actual)),
        )?);
    }
    if !pair.expected.exists() {
        let name = pair.expected.display();
        return Err(format!("{name} is missing; UPDATE_EXPECTED=1 writes it").into());
    }
    let expected: ExpectedResponse = serde_json::from_str(&fs::read_to_string(&pair.expected)?)?;
    match difference(&expected, &actual) {
        None => Ok(()),
        Some(difference) => Err(difference.into()),
    }
}

/// The maximum number of places in a body that a report shows.
const MAX_PLACES: usize = 20;

/// Returns the differences between a response and the expected one.
fn difference(expected: &ExpectedResponse, actual: &ExpectedResponse) -> Option<String> {
    let mut lines = Vec::new();
    let mut report = |part: &str, expected: &dyn fmt::Display, actual: &dyn fmt::Display| {
        lines.push(format!(
            "  {part}\n    expected: {expected}\n    actual:   {actual}"
        ));
    };
    if expected.status != actual.status {
        report("status", &expected.status, &actual.status);
    }
    for (name, value) in &expected.headers {
        let header = actual.headers.get(name);
        if header != Some(value) {
            let header = header.map_or("(absent)", String::as_str);
            report(&format!("header {name}"), value, &header);
        }
    }
    // All other compared headers change the meaning of a response: an unexpected one is a
    // difference.
    let is_significant =
        |name: &str| !["content-encoding", "content-type", "oxp-version"].contains(&name);
    for (name, value) in &actual.headers {
        if is_significant(name) && !expected.headers.contains_key(name) {
            report(&format!("header {name}"), &"(absent)", value);
        }
    }
    let places = json_diff::differences(&expected.body, &actual.body);
    for place in places.iter().take(MAX_PLACES) {
        let part = format!("body {}", place.pointer);
        report(part.trim_end(), &place.expected, &place.actual);
    }
    if places.len() > MAX_PLACES {
        lines.push(format!("  and {} more", places.len() - MAX_PLACES));
    }
    (!lines.is_empty()).then(|| format!("\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn between(expected: Value, actual: Value) -> Option<String> {
        let response = |body| ExpectedResponse {
            status: 200,
            headers: std::collections::BTreeMap::new(),
            body,
        };
        difference(&response(expected), &response(actual))
    }

    #[test]
    fn a_changed_list_is_shown_as_pointers_with_both_values() {
        let tool = |name: &str, title: &str| json!({"name": name, "title": title, "a/b~": "x".repeat(4800)});
        let all =
            |title| json!({"tools": [tool("a", "A"), tool("b", title), tool("c", "C")], "n": 1});
        let mut fewer = all("B");
        fewer["tools"].as_array_mut().unwrap().remove(0);
        let long = "x".repeat(4800) + "y" + &"z".repeat(4800);
        let mut longer = all("B");
        longer["tools"][2]["a/b~"] = long.into();
        for (actual, expected) in [
            (all("B"), ""),
            (
                all("Z"),
                "  body /tools/1/title\n    expected: \"B\"\n    actual:   \"Z\"",
            ),
            (
                json!({"tools": all("B")["tools"], "m": 1}),
                "  body /n\n    expected: 1\n    actual:   (absent)\n  body /m\n    expected: (absent)\n    actual:   1",
            ),
            (json!(7), "  body\n    expected: {"),
            (fewer, "  body /tools/0\n    expected: {"),
            (longer, "  body /tools/2/a~1b~0\n    expected: …xxx"),
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

    #[test]
    fn a_header_that_changes_the_meaning_is_a_difference_on_either_side() {
        let response = |headers: &[(&str, &str)]| ExpectedResponse {
            status: 200,
            headers: headers
                .iter()
                .map(|(name, it)| ((*name).to_owned(), (*it).to_owned()))
                .collect(),
            body: Value::Null,
        };
        let seconds = ("retry-after", "1");
        let json = ("content-type", "application/json");
        for (expected, actual, says) in [
            (&[seconds][..], &[seconds][..], None),
            (
                &[],
                &[seconds],
                Some("header retry-after\n    expected: (absent)\n    actual:   1"),
            ),
            (
                &[seconds],
                &[],
                Some("header retry-after\n    expected: 1\n    actual:   (absent)"),
            ),
            (
                &[seconds],
                &[("retry-after", "2")],
                Some("expected: 1\n    actual:   2"),
            ),
            // An expected file may leave these out, but not have others.
            (
                &[],
                &[json, ("content-encoding", "gzip"), ("oxp-version", "1.0")],
                None,
            ),
            (
                &[("content-type", "text/plain")],
                &[json],
                Some("header content-type"),
            ),
        ] {
            let difference = difference(&response(expected), &response(actual));
            let is_said = match (&difference, says) {
                (Some(text), Some(says)) => text.contains(says),
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
            "\n  body /content/0/text/a/1\n    expected: 2\n    actual:   3"
        );
        // Equal as JSON, but not the same text.
        let spaced = compare("[1, 2]", "[1,2]").unwrap();
        assert_eq!(
            spaced,
            "\n  body /content/0/text\n    expected: \"[1, 2]\"\n    actual:   \"[1,2]\""
        );
        assert_eq!(compare("[1, 2]", "[1, 2]"), None);
        let many = |first: usize| (first..first + 1000).collect::<Value>();
        let report = between(many(0), many(5000)).unwrap();
        assert!(report.ends_with("  and 980 more"), "{report}");
        assert!(report.lines().count() < 70, "{report}");
    }
}
