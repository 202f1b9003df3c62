//! Recording: every request becomes an event with its expected answer, ready to be committed.
//!
//! Nothing secret may land in a repository: credentials, tokens and secret values are replaced by
//! placeholders, in the event and wherever the answer repeats them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use bytes::Bytes;
use http::{HeaderMap, request::Parts};
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};

use crate::testing::Expected;

/// Headers that carry credentials.
const CREDENTIALS: [&str; 5] = [
    "authorization",
    "cookie",
    "oxp-api-key",
    "proxy-authorization",
    "x-api-key",
];

struct Recorder {
    folder: PathBuf,
    count: AtomicUsize,
}

/// Writes what `router` serves into `folder`.
pub(super) fn into(folder: PathBuf, router: Router) -> io::Result<Router> {
    fs::create_dir_all(&folder)?;
    let files = fs::read_dir(&folder)?.count();
    let recorder = Arc::new(Recorder {
        folder,
        // Goes on behind what is there already, and overwrites nothing.
        count: AtomicUsize::new(files),
    });
    Ok(router.layer(middleware::from_fn_with_state(recorder, record)))
}

async fn record(State(recorder): State<Arc<Recorder>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
    else {
        return crate::wire::oxp::undecodable_body();
    };
    let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
    let (answer, answered) = next.run(request).await.into_parts();
    let answered = answered
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    let answered = answered.unwrap_or_default();
    match recorder.write(&parts, &body, &answer, &answered) {
        Ok(Some(file)) => tracing::info!(file = %file.display(), "recorded"),
        Ok(None) => tracing::warn!(
            "not recorded: the body is not JSON, so that secrets in it could not be found"
        ),
        Err(error) => tracing::error!(%error, "not recorded"),
    }
    Response::from_parts(answer, Body::from(answered))
}

impl Recorder {
    fn write(
        &self,
        request: &Parts,
        body: &Bytes,
        answer: &http::response::Parts,
        answered: &Bytes,
    ) -> io::Result<Option<PathBuf>> {
        let Some((body, secrets)) = without_secrets(body) else {
            return Ok(None);
        };
        let mut answered = String::from_utf8_lossy(answered).into_owned();
        for (secret, placeholder) in secrets {
            answered = answered.replace(&secret, &placeholder);
        }
        let expected = Expected::of(answer.status, &answer.headers, answered.as_bytes());
        let number = self.count.fetch_add(1, Ordering::Relaxed) / 2 + 1;
        let path = request
            .uri
            .path()
            .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let name = format!(
            "{number:04}-{}{path}",
            request.method.as_str().to_lowercase()
        );
        self.count.fetch_add(1, Ordering::Relaxed);
        let file = self.folder.join(format!("{name}.json"));
        pretty(&file, &event_of(request, body.as_deref()))?;
        pretty(
            &self.folder.join(format!("{name}.expected.json")),
            &json!(expected),
        )?;
        Ok(Some(file))
    }
}

fn pretty(file: &Path, value: &Value) -> io::Result<()> {
    fs::write(file, format!("{value:#}\n"))
}

type Replaced = Vec<(String, String)>;

/// The body with placeholders, and what was replaced by which. `None` where nothing can be told
/// about the body.
fn without_secrets(body: &[u8]) -> Option<(Option<String>, Replaced)> {
    if body.is_empty() {
        return Some((None, Vec::new()));
    }
    let mut value: Value = serde_json::from_slice(body).ok()?;
    let mut replaced = Vec::new();
    for pointer in ["/context", "/request/context"] {
        if let Some(context) = value.pointer_mut(pointer) {
            replace_in(&mut context["secrets"], "value", &mut replaced);
            replace_in(&mut context["authorization"], "token", &mut replaced);
        }
    }
    let text = if replaced.is_empty() {
        String::from_utf8(body.to_vec()).ok()?
    } else {
        value.to_string()
    };
    Some((Some(text), replaced))
}

fn replace_in(list: &mut Value, field: &str, replaced: &mut Replaced) {
    for item in list.as_array_mut().into_iter().flatten() {
        let placeholder = format!(
            "{}_OF_{}",
            field.to_uppercase(),
            item["id"].as_str().unwrap_or("?")
        );
        match item.get_mut(field) {
            Some(Value::String(secret)) => {
                replaced.push((secret.clone(), placeholder.clone()));
                *secret = placeholder;
            }
            Some(other) => *other = Value::String(placeholder),
            None => {}
        }
    }
}

/// The request as an API Gateway HTTP API would hand it over, payload format 2.0.
fn event_of(request: &Parts, body: Option<&str>) -> Value {
    let method = request.method.as_str();
    let path = request.uri.path();
    let mut event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": request.uri.query().unwrap_or_default(),
        "headers": headers_of(&request.headers),
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "recorded",
            "domainName": "recorded.execute-api.us-east-1.amazonaws.com",
            "domainPrefix": "recorded",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "recorded",
            },
            "requestId": "recorded",
            "routeKey": "$default",
            "stage": "$default",
            "time": "05/Oct/2023:12:00:00 +0000",
            "timeEpoch": 1_696_507_200_000_u64,
        },
        "isBase64Encoded": false,
    });
    if let Some(body) = body {
        event["body"] = body.into();
    }
    event
}

fn headers_of(headers: &HeaderMap) -> Map<String, Value> {
    let shown = |name: &str, value: &str| {
        if CREDENTIALS.contains(&name) {
            "PLACEHOLDER".to_owned()
        } else {
            value.to_owned()
        }
    };
    let mut map = Map::new();
    for name in headers.keys() {
        // The gateway joins what stands several times.
        let values = headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let values: Vec<_> = values.map(|value| shown(name.as_str(), value)).collect();
        map.insert(name.to_string(), values.join(",").into());
    }
    map
}
