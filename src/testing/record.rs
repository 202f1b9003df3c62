//! Recording: every request becomes an event with its expected response, ready to be committed.
//!
//! No secret may end up in a repository: credentials, tokens and secret values are replaced by
//! placeholders, in the event and wherever the response repeats them, and so are the values of all
//! headers that are not known to be harmless.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    slice,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use http::{
    HeaderMap, HeaderName,
    header::{ACCEPT_ENCODING, IF_NONE_MATCH},
    request::Parts,
};
use lambda_tools_core::testing::api_responses;
use serde_json::{Map, Value, json};

use super::ExpectedResponse;
use crate::{
    Protocol, Secret,
    arrival::LARGEST_PAYLOAD,
    call::Engine,
    protocol::problem,
    secret::redaction::{Redaction, SHORTEST_TO_RECORD},
};

/// Headers whose values are recorded. All other headers are recorded without their values, because
/// gateways, proxies and clients put credentials into headers of any name.
const HARMLESS: [&str; 11] = [
    "accept",
    "access-control-request-headers",
    "access-control-request-method",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "origin",
    "traceparent",
    "tracestate",
    "user-agent",
];

const PLACEHOLDER: &str = "PLACEHOLDER";

struct Recorder {
    folder: PathBuf,
    engine: Arc<Engine>,
    last_number: AtomicUsize,
}

/// Records the requests to `router` in `folder`.
pub(crate) fn into_folder(
    folder: PathBuf,
    router: Router,
    engine: Arc<Engine>,
) -> Result<Router, crate::Error> {
    let shown = folder.display();
    let describe = |error| format!("RECORD_EVENTS: cannot write to '{shown}': {error}");
    fs::create_dir_all(&folder).map_err(describe)?;
    *api_responses() = Some(Map::new());
    let recorder = Arc::new(Recorder {
        last_number: AtomicUsize::new(last_number_in(&folder)?),
        engine,
        folder,
    });
    Ok(router.layer(middleware::from_fn_with_state(recorder, record)))
}

/// Returns the highest number at the start of a file name: recording continues after it.
fn last_number_in(folder: &Path) -> io::Result<usize> {
    let mut last = 0;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|it| it.split('-').next());
        last = last.max(number.and_then(|it| it.parse().ok()).unwrap_or(0));
    }
    Ok(last)
}

async fn record(State(recorder): State<Arc<Recorder>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    // A recording has whole responses, which people can read.
    parts.headers.remove(ACCEPT_ENCODING);
    parts.headers.remove(IF_NONE_MATCH);
    let Ok(body) = to_bytes(body, LARGEST_PAYLOAD).await else {
        return problem::undecodable_body("The body is too large or incomplete.");
    };
    let request = Request::from_parts(parts.clone(), body.clone().into());
    let response = next.run(request).await;
    #[cfg(feature = "explorer")]
    if response
        .extensions()
        .get::<crate::protocol::explorer::FromExplorer>()
        .is_some()
    {
        return response;
    }
    let (response, sent) = response.into_parts();
    let sent = to_bytes(sent, usize::MAX).await.unwrap_or_default();
    let engine = &recorder.engine;
    let mut secrets = engine.secrets.declared_values().await;
    for (id, name) in &engine.secret_headers {
        let values = parts.headers.get_all(name).iter();
        let values = values.filter_map(|it| it.to_str().ok());
        secrets.extend(values.map(|it| (id.clone(), it.into())));
    }
    let expected = ExpectedResponse::of(response.status, &response.headers, &sent);
    let mut answers = json!(api_responses().replace(Map::new()));
    let recording = recording_of(&parts, &body, secrets, expected, &mut answers);
    match recording.map(|(event, expected)| recorder.write(&event, &expected, &answers)) {
        Some(Ok(file)) => tracing::info!(file = %file.display(), "recorded"),
        Some(Err(error)) => tracing::error!(%error, "not recorded"),
        None => {
            tracing::warn!("not recorded: the body is not JSON, so its secrets cannot be found");
        }
    }
    Response::from_parts(response, sent.into())
}

/// Returns the event of a request, and its expected response, without secrets; `None` if the body is
/// not JSON. `stored` are the values in the store and in headers, with their ids. Removes the secrets from the
/// `answers` of APIs, too.
fn recording_of(
    request: &Parts,
    body: &[u8],
    stored: Vec<(String, Secret)>,
    mut expected: ExpectedResponse,
    answers: &mut Value,
) -> Option<(Value, ExpectedResponse)> {
    let text = str::from_utf8(body).ok()?;
    let original = match text {
        "" => Value::Null,
        text => serde_json::from_str(text).ok()?,
    };
    let mut body = original.clone();
    let mut secrets = take_secrets(&mut body);
    let stored = stored.into_iter();
    secrets.extend(stored.map(|(id, value)| (value, format!("VALUE_OF_{id}"))));
    secrets.extend(credentials_of(&request.headers));
    let redaction = redaction_of(&secrets);
    expected.body = redacted(expected.body, &redaction);
    *answers = redacted(answers.take(), &redaction);
    for value in expected.headers.values_mut() {
        *value = redact(value, &redaction);
    }
    let body = redacted(body, &redaction);
    let mut event = event_of(request, &redaction);
    if !text.is_empty() {
        // As it was sent, unless it contained a secret.
        let changed = (body != original).then(|| body.to_string());
        event["body"] = changed.unwrap_or_else(|| text.to_owned()).into();
    }
    Some((event, expected))
}

impl Recorder {
    fn write(
        &self,
        event: &Value,
        expected: &ExpectedResponse,
        answers: &Value,
    ) -> io::Result<PathBuf> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let in_file_name = |text: &str| {
            let text: String = text.chars().take(60).collect();
            text.replace(|it: char| !it.is_ascii_alphanumeric(), "-")
        };
        let http = &event["requestContext"]["http"];
        let field = |name: &str| http[name].as_str().unwrap_or_default();
        let method = field("method").to_lowercase();
        let path = in_file_name(field("path"));
        let called = called_in(event).map(|name| in_file_name(&format!("-{name}")));
        let name = format!("{number:04}-{method}{path}{}", called.unwrap_or_default());
        let file = self.folder.join(format!("{name}.json"));
        write_new(&file, event)?;
        write_new(&file.with_extension("expected.json"), &json!(expected))?;
        if *answers != json!({}) {
            write_new(&file.with_extension("responses.json"), answers)?;
        }
        Ok(file)
    }
}

/// Returns the name of the tool, or of the method, in the body of an event.
fn called_in(event: &Value) -> Option<String> {
    const NAMES: [&str; 4] = ["/tool_id", "/request/tool_id", "/params/name", "/method"];
    let body: Value = serde_json::from_str(event["body"].as_str()?).ok()?;
    let mut names = NAMES.iter();
    names.find_map(|name| Some(body.pointer(name)?.as_str()?.to_owned()))
}

/// Creates a file. An existing one is never overwritten, so that no recording is lost.
fn write_new(file: &Path, value: &Value) -> io::Result<()> {
    writeln!(File::create_new(file)?, "{value:#}")
}

/// Returns the caller's credentials, which may be repeated elsewhere.
fn credentials_of(headers: &HeaderMap) -> impl Iterator<Item = (Secret, String)> {
    const NAMES: [&str; 8] = [
        "auth", "cookie", "cred", "key", "pass", "secret", "session", "token",
    ];
    let has_credential = |name: &HeaderName| NAMES.iter().any(|it| name.as_str().contains(it));
    let values = headers.iter().filter(move |(name, _)| has_credential(name));
    let values = values.filter_map(|(_, value)| value.to_str().ok());
    // The secret is the value without its scheme, such as `Bearer`.
    let values = values.map(|value| value.split_once(' ').map_or(value, |(_, value)| value));
    values.map(|value| (value.into(), PLACEHOLDER.to_owned()))
}

/// Returns the query with placeholders for all values: some callers send keys there.
fn query_of(request: &Parts) -> String {
    let pairs = request.uri.query().unwrap_or_default().split('&');
    let pairs = pairs.map(|pair| match pair.split_once('=') {
        Some((name, _)) => format!("{name}={PLACEHOLDER}"),
        None => pair.to_owned(),
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns the request as an event of an API Gateway HTTP API, payload format 2.0.
fn event_of(request: &Parts, redaction: &Redaction) -> Value {
    let path = redact(request.uri.path(), redaction);
    json!({
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": redact(&query_of(request), redaction),
        "headers": redacted(headers_of(&request.headers), redaction),
        "requestContext": {
            "domainName": "recorded.execute-api.us-east-1.amazonaws.com",
            "http": {"method": request.method.as_str(), "path": path},
            "stage": "$default",
        },
        "isBase64Encoded": false,
    })
}

fn headers_of(headers: &HeaderMap) -> Value {
    let values = headers.keys().map(|name| {
        // API Gateway joins the values of a repeated header.
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
        let name = name.as_str();
        let value = if is_harmless(name) {
            values.join(",")
        } else {
            PLACEHOLDER.to_owned()
        };
        (name.to_string(), value)
    });
    values.collect()
}

/// Returns true for a header whose value is recorded.
pub(crate) fn is_harmless(name: &str) -> bool {
    let mut declarations = Protocol::declarations();
    HARMLESS.contains(&name) || declarations.any(|it| it.request_headers.contains(&name))
}

/// Secret values, each with its placeholder.
type Placeholders = Vec<(Secret, String)>;

fn redaction_of(secrets: &Placeholders) -> Redaction {
    let secrets = secrets.iter();
    let secrets = secrets.map(|(secret, placeholder)| (secret.expose(), &**placeholder));
    Redaction::with_placeholders(secrets, SHORTEST_TO_RECORD)
}

/// Puts placeholders in the places for secrets in a request's body, which are lists of
/// `{"id": …, FIELD: …}`, and returns what was there. In anything else, every value counts as a
/// secret.
fn take_secrets(body: &mut Value) -> Placeholders {
    let mut secrets = Placeholders::new();
    for (list, field) in Protocol::declarations().flat_map(|it| it.secrets) {
        let items = match body.pointer_mut(list) {
            None => continue,
            Some(Value::Array(items)) => &mut items[..],
            Some(other) => slice::from_mut(other),
        };
        for item in items {
            let id = item.get("id").and_then(Value::as_str).unwrap_or("?");
            let placeholder = format!("{}_OF_{id}", field.to_uppercase());
            let has_field = item.get(field).is_some();
            let secret = if has_field { &mut item[field] } else { item };
            *secret = with_texts(secret.take(), false, &mut |text| {
                secrets.push((text.into(), placeholder.clone()));
                placeholder.clone()
            });
        }
    }
    secrets
}

/// Returns a value without secrets, also in field names.
fn redacted(value: Value, redaction: &Redaction) -> Value {
    with_texts(value, true, &mut |text| redact(&text, redaction))
}

fn redact(text: &str, redaction: &Redaction) -> String {
    redaction.redacted(text).unwrap_or_else(|| text.to_owned())
}

/// Changes all texts in a value. Types do not change, so that the response does not change either:
/// a number whose text would change becomes 0.
fn with_texts(value: Value, in_names: bool, change: &mut impl FnMut(String) -> String) -> Value {
    match value {
        Value::String(text) => change(text).into(),
        Value::Number(number) => {
            let text = number.to_string();
            let is_same = change(text.clone()) == text;
            Value::Number(if is_same { number } else { 0.into() })
        }
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|it| with_texts(it, in_names, change)).collect()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, field)| {
                let name = if in_names { change(name) } else { name };
                (name, with_texts(field, in_names, change))
            });
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) => value,
    }
}

#[cfg(test)]
mod tests;
