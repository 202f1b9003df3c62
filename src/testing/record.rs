//! Recording: every request becomes an event with its expected response, ready to be committed.
//!
//! No secret may end up in a repository: credentials, tokens and secret values are replaced by
//! placeholders, in the event and wherever the response repeats them, and so are the values of all
//! headers that are not known to be harmless.

mod redact;

use std::{
    fs::{self, File},
    io::{self, Write},
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
use http::{
    HeaderMap, HeaderName,
    header::{ACCEPT_ENCODING, IF_NONE_MATCH},
    request::Parts,
};
use http_body_util::{BodyExt, Collected, Limited};
use lambda_tools_core::testing::api_responses;
use serde_json::{Map, Value, json};

use redact::{redact, redacted, redaction_of, take_secrets};

use super::ExpectedResponse;
use crate::{
    Protocol, Secret,
    payload::LARGEST_PAYLOAD,
    protocol::{explorer::FromExplorer, problem},
    secrets::{SecretCache, redaction::Redaction},
};

/// Headers whose values are recorded. All other headers are recorded without their values, because
/// gateways, proxies and clients put credentials into headers of any name.
const HARMLESS: [&str; 17] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "access-control-request-headers",
    "access-control-request-method",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "host",
    "origin",
    "traceparent",
    "tracestate",
    "user-agent",
];

fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || Protocol::request_headers().any(|it| it == name)
}

const PLACEHOLDER: &str = "PLACEHOLDER";

struct Recorder {
    folder: PathBuf,
    secrets: Arc<SecretCache>,
    last_number: AtomicUsize,
}

/// Records the requests to `router` in `folder`.
pub(crate) fn into_folder(
    folder: PathBuf,
    router: Router,
    secrets: Arc<SecretCache>,
) -> Result<Router, crate::Error> {
    let describe = |error| {
        format!(
            "RECORD_EVENTS: cannot write to '{}': {error}",
            folder.display()
        )
    };
    fs::create_dir_all(&folder).map_err(describe)?;
    *api_responses() = Some(Map::new());
    let recorder = Arc::new(Recorder {
        last_number: AtomicUsize::new(last_number_in(&folder)?),
        secrets,
        folder,
    });
    Ok(router.layer(middleware::from_fn_with_state(recorder, record)))
}

/// Returns the highest number at the start of a file name: recording continues after it.
fn last_number_in(folder: &Path) -> io::Result<usize> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<io::Result<Vec<_>>>()?;
    let numbers = names.iter().filter_map(|name| {
        let digits = name.to_str()?.split('-').next()?;
        digits.parse().ok()
    });
    Ok(numbers.max().unwrap_or(0))
}

async fn record(State(recorder): State<Arc<Recorder>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    // A recording has whole responses, which people can read.
    parts.headers.remove(ACCEPT_ENCODING);
    parts.headers.remove(IF_NONE_MATCH);
    let body = Limited::new(body, LARGEST_PAYLOAD).collect().await;
    let Ok(body) = body.map(Collected::to_bytes) else {
        return problem::undecodable_body("The body is too large or incomplete.");
    };
    let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
    let response = next.run(request).await;
    if response.extensions().get::<FromExplorer>().is_some() {
        return response;
    }
    let (response, response_body) = response.into_parts();
    let response_body = response_body.collect().await.map(Collected::to_bytes);
    let response_body = response_body.unwrap_or_default();
    let stored = recorder.secrets.declared_values().await;
    let expected = ExpectedResponse::of(response.status, &response.headers, &response_body);
    let mut answers = json!(api_responses().replace(Map::new()));
    if let Some((event, expected)) = recording_of(&parts, &body, stored, expected, &mut answers) {
        match recorder.write(&event, &expected, &answers) {
            Ok(file) => tracing::info!(file = %file.display(), "recorded"),
            Err(error) => tracing::error!(%error, "not recorded"),
        }
    } else {
        tracing::warn!("not recorded: the body is not JSON, so its secrets cannot be found");
    }
    Response::from_parts(response, Body::from(response_body))
}

/// Returns the event of a request, and its expected response, without secrets; `None` if the body is
/// not JSON. `stored` are the values in the store, with their ids. Removes the secrets from the
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
        let in_file_name = |text: &str| -> String {
            let chars = text.chars().take(60);
            let chars = chars.map(|it| if it.is_ascii_alphanumeric() { it } else { '-' });
            chars.collect()
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
    let mut names = NAMES.iter().filter_map(|name| body.pointer(name)?.as_str());
    names.next().map(str::to_owned)
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
    let method = request.method.as_str();
    let path = redact(request.uri.path(), redaction);
    json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": redact(&query_of(request), redaction),
        "headers": redacted(headers_of(&request.headers), redaction),
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
    })
}

fn headers_of(headers: &HeaderMap) -> Value {
    let values = headers.keys().map(|name| {
        // API Gateway joins the values of a repeated header.
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
        let is_harmless = is_harmless(name.as_str());
        let value = if is_harmless {
            values.join(",")
        } else {
            PLACEHOLDER.to_owned()
        };
        (name.to_string(), value)
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::FIXED, secrets::Secrets};

    /// Returns a response without a body.
    fn ok() -> ExpectedResponse {
        ExpectedResponse::of(http::StatusCode::OK, &HeaderMap::new(), b"")
    }

    #[tokio::test]
    async fn a_secret_from_the_store_is_not_recorded() {
        use crate::{Context, Failure, Server, Tool, Toolkit};
        use lambda_http::tower::ServiceExt;

        async fn reveal(_: Value, cx: Context) -> Result<Value, Failure> {
            Ok(json!(format!(
                "https://{}@a.example",
                cx.secret("KEY")?.expose()
            )))
        }

        let folder = std::env::temp_dir().join(format!("stored-{}", std::process::id()));
        let input = json!({"type": "object"});
        let tool = Tool::dynamic("T.T@1.0.0", "d", input, json!({}), reveal);
        let secrets = Secrets::fixed([("KEY", "marked-value")]);
        let server = Server::new(Toolkit::new([tool.secret("KEY")]).unwrap()).secrets(secrets);
        let (router, app) = crate::assemble::assemble(server, FIXED, FIXED);
        let router = into_folder(folder.clone(), router, Arc::clone(&app.engine.secrets)).unwrap();
        let request = Request::post("/tools/call").body(Body::from(r#"{"tool_id": "T.T"}"#));
        let response = router.oneshot(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        let expected = fs::read_to_string(folder.join("0001-post-tools-call-T-T.expected.json"));
        fs::remove_dir_all(&folder).unwrap();
        let expected = expected.unwrap();
        assert!(
            expected.contains("https://VALUE_OF_KEY@a.example"),
            "{expected}"
        );
        assert!(!expected.contains("marked"), "{expected}");
    }

    #[test]
    fn confidential_parts_of_a_request_are_not_recorded() {
        let others = "x-amz-security-token x-vault-token x-forwarded-access-token x-amzn-oidc-data \
            x-of-the-future";
        let mut request = Request::get("/tools/stored-value/x?stored%2Dvalue&key=k-marked&page")
            .header("authorization", "Bearer marked-bearer")
            .header("cookie", "session=marked-cookie")
            .header(
                "user-agent",
                "agent/1.0 (marked-x-vault-token; c3RvcmVkLXZhbHVl)",
            )
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2025-06-18");
        for name in others.split(' ') {
            request = request.header(name, format!("marked-{name}"));
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let mut secrets: Vec<_> = credentials_of(&parts.headers).collect();
        secrets.push(("stored-value".into(), "VALUE_OF_KEY".to_owned()));
        let event = event_of(&parts, &redaction_of(&secrets));
        assert!(!event.to_string().contains("marked"), "{event:#}");
        assert_eq!(event["rawPath"], "/tools/VALUE_OF_KEY/x");
        assert_eq!(event["requestContext"]["http"]["path"], event["rawPath"]);
        assert_eq!(event["rawQueryString"], "VALUE_OF_KEY&key=PLACEHOLDER&page");
        let mut expected = json!({
            "user-agent": "agent/1.0 (PLACEHOLDER; VALUE_OF_KEY)",
            "content-type": "application/json",
            "mcp-protocol-version": "2025-06-18",
        });
        for name in others.split(' ').chain(["authorization", "cookie"]) {
            expected[name] = PLACEHOLDER.into();
        }
        assert_eq!(event["headers"], expected);
    }

    #[test]
    fn a_body_without_secrets_is_recorded_as_it_was_sent() {
        let (parts, ()) = Request::post("/tools/call").body(()).unwrap().into_parts();
        let text = "{\"tool_id\": \"A.B\",\n  \"input\": {\"amount\": 1.50}}";
        let recording = recording_of(&parts, text.as_bytes(), vec![], ok(), &mut Value::Null);
        let (event, _) = recording.unwrap();
        assert_eq!(event["body"], text);
    }

    /// A short one, which failures and logs may show.
    #[test]
    fn the_answers_of_apis_are_recorded_without_secrets() {
        let request = Request::post("/tools/call").body(()).unwrap();
        let (parts, ()) = request.into_parts();
        let body =
            br#"{"tool_id": "A.B", "context": {"secrets": [{"id": "PIN", "value": "pin-77"}]}}"#;
        let mut answers =
            json!({"GET /a?key=key-77": {"status": 200, "body": ["pin-77", "key-77 pin-7"]}});
        let stored = vec![("KEY".to_owned(), "key-77".into())];
        recording_of(&parts, body, stored, ok(), &mut answers).unwrap();
        let redacted = json!({"GET /a?key=VALUE_OF_KEY": {"status": 200,
                              "body": ["VALUE_OF_PIN", "VALUE_OF_KEY pin-7"]}});
        assert_eq!(answers, redacted);
    }

    #[test]
    fn files_are_named_after_the_method_the_path_and_the_tool() {
        let folder = std::env::temp_dir().join(format!("names-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let recorder = || Recorder {
            folder: folder.clone(),
            secrets: SecretCache::new(Secrets::none(), Vec::new(), FIXED),
            last_number: AtomicUsize::new(11),
        };
        let long = "x".repeat(100);
        let cut = format!("0012-get-{}.json", "x".repeat(59));
        let mut last = Value::Null;
        let call = r#"{"tool_id": "A.B@1.0.0"}"#;
        let in_schema = r#"{"request": {"tool_id": "A.B"}}"#;
        let mcp_call = r#"{"method": "tools/call", "params": {"name": "A_B"}}"#;
        let mcp_list = r#"{"method": "tools/list"}"#;
        // A caller's text never becomes a path.
        let odd = r#"{"tool_id": "../\u0000\u00e9/y"}"#;
        for (request, body, name) in [
            ("GET /tools", "", "0012-get-tools.json"),
            ("POST /call", call, "0012-post-call-A-B-1-0-0.json"),
            ("POST /call", in_schema, "0012-post-call-A-B.json"),
            ("POST /mcp", mcp_call, "0012-post-mcp-A-B.json"),
            ("POST /mcp", mcp_list, "0012-post-mcp-tools-list.json"),
            ("POST /mcp", r#"{"method": 7}"#, "0012-post-mcp.json"),
            ("POST /../../x", odd, "0012-post-------x-------y.json"),
            (&format!("GET /{long}"), "", &cut),
        ] {
            let (method, path) = request.split_once(' ').unwrap();
            let http = json!({"method": method, "path": path});
            last = json!({"requestContext": {"http": http}, "body": body});
            let file = recorder().write(&last, &ok(), &json!({})).unwrap();
            assert_eq!(file.parent(), Some(&*folder));
            assert_eq!(file.file_name().unwrap().to_str(), Some(name));
            let response = file.with_extension("expected.json");
            assert!(response.exists(), "{}", response.display());
        }
        // An earlier recording stays.
        assert!(recorder().write(&last, &ok(), &json!({})).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn recording_continues_after_the_highest_number() {
        let folder = std::env::temp_dir().join(format!("last-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["0002-get.json", "0007-get.expected.json", "notes.txt"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let last = last_number_in(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(last, 7);
    }
}
