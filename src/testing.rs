//! Testing tools with events: recorded requests, replayed in-process against their answers.
//!
//! A folder of `NAME.json`, each a Lambda event, with `NAME.expected.json` beside it, is a test
//! suite that says in the open what goes over the wire. Clock and ids are fixed while replaying,
//! so that every answer is exact.

mod context;
pub(crate) mod record;

use std::{
    collections::BTreeMap,
    env, fmt, fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::Router;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Protocol, Server, assemble::assemble, clock::FIXED, event};

pub use context::{ContextBuilder, context};

/// The answer that belongs to an event.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ExpectedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers that matter, names in lower case. An answer may have others.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body: as JSON where it is JSON, else as a string.
    #[serde(default)]
    pub body: Value,
}

impl ExpectedResponse {
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = || String::from_utf8_lossy(body).into_owned();
        // The headers that are asserted in files that are written, not by hand.
        let named = Protocol::answer_headers().filter_map(|name| {
            let value = headers.get(name)?.to_str().ok()?;
            Some((name.to_owned(), value.to_owned()))
        });
        Self {
            status: status.as_u16(),
            headers: named.collect(),
            body: match serde_json::from_slice(body) {
                Ok(json) => json,
                Err(_) if body.is_empty() => Value::Null,
                Err(_) => Value::String(text()),
            },
        }
    }
}

/// A Lambda function in-process: events go in, answers come out, no AWS and no socket between.
pub struct LambdaFunction {
    router: Router,
    moved: Arc<AtomicU64>,
}

impl LambdaFunction {
    /// The function that [`serve`](crate::serve) would run, with a fixed clock (5 October 2023,
    /// 12:00:00 UTC) on which calls take no time, and with one fixed id. The environment has no
    /// say: without [`Server::auth`] everybody may call, without [`Server::secrets`] there is no
    /// store, without [`Server::idempotency`] every call runs.
    #[must_use]
    pub fn new(server: impl Into<Server>) -> Self {
        let moved = Arc::default();
        let clock = FIXED.movable(&moved);
        let (router, _) = assemble(server.into(), clock.clone(), clock);
        Self { router, moved }
    }

    /// Moves the clock, which stands still otherwise. Whole milliseconds.
    pub fn advance(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.moved.fetch_add(ms, Ordering::Relaxed);
    }

    /// Answers one event, given as its JSON text, with the JSON that Lambda would send back.
    ///
    /// # Errors
    /// What Lambda reports as a failed invocation: the text is no event that carries an HTTP
    /// request.
    pub async fn invoke(&self, event: &str) -> Result<Value, crate::Error> {
        let context = lambda_http::lambda_runtime::Context::default();
        let answer = event::invoke(self.router.clone(), event, context, false).await?;
        Ok(serde_json::to_value(&answer)?)
    }

    /// Answers one event, in the form of an expected file.
    ///
    /// # Errors
    /// As [`LambdaFunction::invoke`].
    pub async fn answer(&self, event: &str) -> Result<ExpectedResponse, crate::Error> {
        let answer = self.invoke(event).await?;
        let mut headers = HeaderMap::new();
        for map in [&answer["headers"], &answer["multiValueHeaders"]] {
            for (name, value) in map.as_object().into_iter().flatten() {
                let value = value.get(0).unwrap_or(value).as_str().unwrap_or_default();
                headers.insert(http::HeaderName::try_from(name)?, value.parse()?);
            }
        }
        let status = answer["statusCode"].as_u64().unwrap_or_default();
        let status = StatusCode::from_u16(u16::try_from(status)?)?;
        let body = answer["body"].as_str().unwrap_or_default();
        Ok(ExpectedResponse::of(status, &headers, body.as_bytes()))
    }
}

/// Replays every event below `folder` against its expected file, in the order of their names.
///
/// ```no_run
/// # use lambda_tools::{Toolkit, testing};
/// # fn tools() -> Vec<lambda_tools::Tool> { vec![] }
/// # // In a test this function carries #[tokio::test].
/// async fn events() {
///     testing::replay("events", Toolkit::new(tools()).unwrap()).await;
/// }
/// ```
///
/// With `UPDATE_EXPECTED=1` in the environment the expected files are written instead of
/// compared: read the difference before you commit it.
///
/// # Panics
/// With a report of everything that is wrong: answers that differ, an event without an expected
/// file, an expected file without an event, a folder without events.
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
    let (wrong, all) = (report.len(), pairs.len());
    assert!(
        report.is_empty(),
        "{wrong} of {all} events are not answered as expected\n{}",
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
    let answer = function.answer(&fs::read_to_string(&pair.event)?).await?;
    if update {
        return Ok(fs::write(
            &pair.expected,
            format!("{:#}\n", serde_json::json!(answer)),
        )?);
    }
    if !pair.expected.exists() {
        let name = pair.expected.display();
        return Err(format!("{name} is missing; UPDATE_EXPECTED=1 writes it").into());
    }
    let expected: ExpectedResponse = serde_json::from_str(&fs::read_to_string(&pair.expected)?)?;
    match Difference::between(&expected, &answer) {
        None => Ok(()),
        Some(difference) => Err(difference.to_string().into()),
    }
}

/// Where an answer is not what was expected.
struct Difference(String);

impl Difference {
    fn between(expected: &ExpectedResponse, answer: &ExpectedResponse) -> Option<Self> {
        let mut lines = Vec::new();
        let mut compare = |what: &str, expected: &dyn fmt::Display, answer: &dyn fmt::Display| {
            lines.push(format!(
                "  {what}\n    expected: {expected}\n    answered: {answer}"
            ));
        };
        if expected.status != answer.status {
            compare("status", &expected.status, &answer.status);
        }
        for (name, value) in &expected.headers {
            let answered = answer.headers.get(name);
            if answered != Some(value) {
                let answered = answered.map_or("(absent)", String::as_str);
                compare(&format!("header {name}"), value, &answered);
            }
        }
        // These change what an answer means; one that is not expected is a difference.
        let telling = |name: &str| !["content-type", "oxp-version"].contains(&name);
        for (name, value) in &answer.headers {
            if telling(name) && !expected.headers.contains_key(name) {
                compare(&format!("header {name}"), &"(absent)", value);
            }
        }
        if expected.body != answer.body {
            compare("body", &expected.body, &answer.body);
        }
        (!lines.is_empty()).then(|| Self(format!("\n{}", lines.join("\n"))))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
