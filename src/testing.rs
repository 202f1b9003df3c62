//! Testing tools with events: recorded requests, replayed in-process and compared with their
//! expected responses.
//!
//! A folder of Lambda events, `NAME.json`, each with a `NAME.expected.json`, is a test suite that
//! shows exactly what goes over the wire. The clock and ids are fixed during a replay, so every
//! response is reproducible.

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

use crate::{DirectCalls, Protocol, Server, assemble::assemble, clock::FIXED, event};

pub use context::{ContextBuilder, context};

/// The expected response to an event.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ExpectedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers that clients read, with names in lower case. Other headers are not compared.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body: JSON if it is valid JSON, else a string.
    #[serde(default)]
    pub body: Value,
}

impl ExpectedResponse {
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = || String::from_utf8_lossy(body).into_owned();
        let headers = Protocol::response_headers().filter_map(|name| {
            let value = headers.get(name)?.to_str().ok()?;
            Some((name.to_owned(), value.to_owned()))
        });
        Self {
            status: status.as_u16(),
            headers: headers.collect(),
            body: match serde_json::from_slice(body) {
                Ok(json) => json,
                Err(_) if body.is_empty() => Value::Null,
                Err(_) => Value::String(text()),
            },
        }
    }
}

/// An in-process Lambda function: takes events and returns responses, without AWS or sockets.
pub struct LambdaFunction {
    router: Router,
    direct_errors: bool,
    /// The clock's advance, in milliseconds.
    elapsed: Arc<AtomicU64>,
}

impl LambdaFunction {
    /// The function that [`serve`](crate::serve) would run, with a fixed clock (5 October 2023,
    /// 12:00:00 UTC), so that calls take no time, and one fixed id. Environment variables are
    /// ignored: without [`Server::auth`] anyone may call, without [`Server::secrets`] there is no
    /// store, without [`Server::idempotency`] every call runs.
    #[must_use]
    pub fn new(server: impl Into<Server>) -> Self {
        let server = server.into();
        let direct_errors = server.direct_calls == Some(DirectCalls::Errors);
        let elapsed = Arc::default();
        let clock = FIXED.movable(&elapsed);
        let (router, _) = assemble(server, clock.clone(), clock);
        Self {
            router,
            direct_errors,
            elapsed,
        }
    }

    /// Advances the clock, which does not run by itself, by whole milliseconds.
    pub fn advance(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.elapsed.fetch_add(ms, Ordering::Relaxed);
    }

    /// Handles one event, passed as JSON text, and returns the JSON that Lambda would send back.
    ///
    /// # Errors
    /// A failed invocation, as Lambda reports it: the text is neither an event that carries an HTTP
    /// request nor a call, or it is a call that does not succeed, with [`DirectCalls::Errors`].
    pub async fn invoke(&self, event: &str) -> Result<Value, crate::Error> {
        let context = lambda_http::lambda_runtime::Context::default();
        let router = self.router.clone();
        let response = event::invoke(router, event, context, false, self.direct_errors).await?;
        Ok(serde_json::to_value(&response)?)
    }

    /// Handles one event and returns the response in the form of an expected file.
    ///
    /// # Errors
    /// The errors of [`LambdaFunction::invoke`].
    pub async fn respond(&self, event: &str) -> Result<ExpectedResponse, crate::Error> {
        let response = self.invoke(event).await?;
        if response.get("statusCode").is_none() {
            // A call by itself: the answer is the body alone.
            let body = response.to_string();
            let headers = HeaderMap::new();
            return Ok(ExpectedResponse::of(
                StatusCode::OK,
                &headers,
                body.as_bytes(),
            ));
        }
        let mut headers = HeaderMap::new();
        for map in [&response["headers"], &response["multiValueHeaders"]] {
            for (name, value) in map.as_object().into_iter().flatten() {
                let value = value.get(0).unwrap_or(value).as_str().unwrap_or_default();
                headers.insert(http::HeaderName::try_from(name)?, value.parse()?);
            }
        }
        let status = response["statusCode"].as_u64().unwrap_or_default();
        let status = StatusCode::from_u16(u16::try_from(status)?)?;
        let body = response["body"].as_str().unwrap_or_default();
        Ok(ExpectedResponse::of(status, &headers, body.as_bytes()))
    }
}

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
        "{failed} of {all} events do not have the expected response\n{}",
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
        Some(difference) => Err(difference.to_string().into()),
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
        let is_significant = |name: &str| !["content-type", "oxp-version"].contains(&name);
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
