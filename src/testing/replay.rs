//! Replaying recorded events.

use std::{
    env, fmt, fs, io,
    path::{Path, PathBuf},
};

use super::{ExpectedResponse, LambdaFunction};
use crate::Server;

/// Replays every event below `folder`, sorted by name, and compares each response with its expected
/// file.
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
                names.insert(name.strip_suffix(".expected").unwrap_or(name).to_owned());
            }
        }
    }
    let pair = |name: String| Pair {
        event: format!("{name}.json").into(),
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
        return Err("there is an expected file but no event".into());
    }
    let actual = function.respond(&fs::read_to_string(&pair.event)?).await?;
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
    match Difference::between(&expected, &actual) {
        None => Ok(()),
        Some(difference) => {
            let advice = function.advice(&expected, &actual);
            Err(format!("{difference}{advice}").into())
        }
    }
}

impl LambdaFunction {
    /// Says what a response may differ for, if the cause is the server in the test.
    fn advice(&self, expected: &ExpectedResponse, actual: &ExpectedResponse) -> &'static str {
        // Every protocol's text about a missing secret contains these words.
        let misses_secret = |it: &ExpectedResponse| it.body.to_string().contains("the secret '");
        if !self.has_secrets && misses_secret(actual) && !misses_secret(expected) {
            "\n  this server has no secrets: pass Secrets::fixed(…) to Server::secrets"
        } else {
            ""
        }
    }
}

/// The differences between a response and the expected one.
struct Difference(String);

impl Difference {
    fn between(expected: &ExpectedResponse, actual: &ExpectedResponse) -> Option<Self> {
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
        if expected.body != actual.body {
            report("body", &expected.body, &actual.body);
        }
        (!lines.is_empty()).then(|| Self(format!("\n{}", lines.join("\n"))))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
