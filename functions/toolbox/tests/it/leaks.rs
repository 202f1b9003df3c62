//! No secret reaches any output: bodies, headers, logs at TRACE, panics.
//!
//! Every place that can hold one holds a value with a mark in it, and everything that comes out is
//! searched for the marks.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use lambda_tools::{
    Context, Failure, Secret, Server, Tool, Toolkit,
    secrets::{Reading, SecretStore, Secrets},
    serve,
    testing::Function,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    aws::{Emulator, Gate},
    collector::{Collector, attribute},
    lambda::{event, invoke_on},
    stub::Stub,
    support::{function, repository, runs_as_function, toolbox},
    traced::exporting,
};

/// In every secret value, and nowhere else.
const MARK: &str = "Xmark";

const KEY: &str = "key-Xmark-of-today-0123456789";
const JWT: &str = "jwt-Xmark-0123456789abcdef0123456789";
const TWILIO: &str = "AC00000000000000000000000000000000:token-Xmark-01234567:+15005550006";

/// All events of the repository, with marks wherever a client can put a secret.
fn marked_events() -> Vec<Value> {
    let mut events = Vec::new();
    let mut folders = vec![repository("events")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.to_string_lossy().ends_with(".expected.json") {
                events.push(marked(&path));
            }
        }
    }
    events
}

fn marked(path: &Path) -> Value {
    let mut event: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    for headers in ["headers", "multiValueHeaders"] {
        for (name, value) in event[headers].as_object_mut().into_iter().flatten() {
            match value {
                Value::String(text) => *text = marked_header(name, text),
                Value::Array(texts) => {
                    for text in texts {
                        *text = marked_header(name, text.as_str().unwrap()).into();
                    }
                }
                _ => {}
            }
        }
    }
    if event[&"headers"].is_null() {
        event.as_object_mut().map(|event| event.remove("headers"));
    }
    if event["multiValueHeaders"].is_null() {
        event
            .as_object_mut()
            .map(|event| event.remove("multiValueHeaders"));
    }
    let is_base64 = event["isBase64Encoded"] == true;
    if let Some(text) = event["body"].as_str() {
        let decoded = STANDARD.decode(text).ok().filter(|_| is_base64);
        let text = decoded.map_or(text.to_owned(), |it| {
            String::from_utf8_lossy(&it).into_owned()
        });
        if let Ok(mut body) = serde_json::from_str::<Value>(&text) {
            mark_context(&mut body);
            let text = body.to_string();
            let encoded = if is_base64 {
                STANDARD.encode(text)
            } else {
                text
            };
            event["body"] = encoded.into();
        }
    } else {
        event.as_object_mut().map(|event| event.remove("body"));
    }
    event
}

fn marked_header(name: &str, text: &str) -> String {
    let is_jwt = text.matches('.').count() >= 2;
    match name.to_lowercase().as_str() {
        // The signature is what makes a token one.
        "authorization" if is_jwt => format!("{text}{MARK}"),
        // What is no JWT becomes a key: the right one, if it was right.
        "authorization" | "oxp-api-key" => {
            let right = text.replace("key-of-today", KEY);
            let wrong = format!("{text} wrong-{MARK}");
            if right.contains(KEY) { right } else { wrong }
        }
        _ => text.to_owned(),
    }
}

/// Events that Lambda would not hand over, and one with a token that is accepted.
fn special_events() -> Vec<Value> {
    let mut events = Vec::new();
    let secret = format!("AC1:{MARK}-0123456789:+1");
    for body in [
        json!({"tool_id": "SMS.Send", "secrets": [{"id": "TWILIO_API_KEY", "value": secret}]}),
        json!({"tool_id": "SMS.Send", "context": {"secrets": {"TWILIO_API_KEY": secret}}}),
        json!({"tool_id": "SMS.Send", "context": {"secrets": [secret]}}),
        json!({"tool_id": "SMS.Send", "context": {"secrets": [{"id": secret, "value": 7}]}}),
        json!({"tool_id": "SMS.Send", "input": {"to": secret, "message": secret, "key": secret}}),
    ] {
        let mut event = event("calculator/add.header-form");
        event["body"] = body.to_string().into();
        events.push(event);
    }
    let mut broken = event("calculator/add.header-form");
    broken["body"] = format!("{{\"tool_id\": \"SMS.Send\", \"{secret}").into();
    let mut queried = event("calculator/add.header-form");
    queried["rawQueryString"] = format!("key={secret}").into();
    let mut signed = event("secrets/stored/sms.header-form");
    signed["headers"]["authorization"] = format!("Bearer {}", token(JWT)).into();
    let mut keyed = event("secrets/stored/sms.header-form");
    keyed["headers"]["oxp-api-key"] = KEY.into();
    events.extend([broken, queried, signed, keyed]);
    events
}

fn mark_context(body: &mut Value) {
    for call in ["", "/request"] {
        for (list, field) in [("secrets", "value"), ("authorization", "token")] {
            let list = body.pointer_mut(&format!("{call}/context/{list}"));
            for item in list.and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(value @ Value::String(_)) = item.get_mut(field) {
                    *value = format!("AC1:{MARK}-{field}-0123:+1").into();
                }
            }
        }
    }
}

fn assert_unmarked(what: &str, texts: impl IntoIterator<Item = String>) {
    for text in texts {
        assert!(!text.contains(MARK), "{what}: {text}");
    }
}

/// A file that ends with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("{name}-{}", std::process::id())))
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A token that is valid for an hour.
pub(crate) fn token(secret: &str) -> String {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let claims = json!({"sub": "user_123", "exp": since.as_secs() + 3600});
    let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
}

/// Runs a function on events; everything that it says has to be free of marks.
///
/// Returns what it printed.
async fn search(
    what: &str,
    mut command: Command,
    events: &[Value],
    environment: &[(&str, &str)],
) -> Vec<String> {
    let stderr = Scratch::new(&format!("stderr-{what}"));
    command.stderr(fs::File::create(&stderr.0).unwrap());
    let limit = Some(Duration::from_secs(10));
    let events: Vec<_> = events.iter().map(|event| (event.clone(), limit)).collect();
    let mut everything = vec![
        ("AWS_LAMBDA_LOG_LEVEL", "trace"),
        ("RUST_LOG", "trace"),
        ("RUST_BACKTRACE", "1"),
    ];
    everything.extend(environment);
    let (reports, printed) = invoke_on(&mut command, &events, &everything).await;
    assert_eq!(reports.len(), events.len());
    assert!(printed.len() > events.len(), "{what}: nothing is logged");
    assert!(
        printed.iter().any(|line| line.contains("TRACE")),
        "{what}: not at TRACE"
    );
    assert_unmarked(
        what,
        reports.iter().map(|(_, answer, _)| answer.to_string()),
    );
    assert_unmarked(what, printed.clone());
    assert_unmarked(what, [stderr.text()]);
    printed
}

/// All the ways to be configured, each with a name.
fn choices<'a>(file: &'a str, broken: &'a str) -> Vec<(&'a str, Vec<(&'a str, &'a str)>)> {
    vec![
        (
            "open",
            vec![("TOOLS_AUTH", "none"), ("TWILIO_API_KEY", TWILIO)],
        ),
        (
            "keys",
            vec![("TOOLS_AUTH", "api-key,jwt"), ("TOOLS_SECRETS_FILE", file)],
        ),
        (
            "broken",
            vec![("TOOLS_AUTH", "api-key"), ("TOOLS_SECRETS_FILE", broken)],
        ),
        (
            "aws",
            vec![
                ("TOOLS_AUTH", "api-key,jwt"),
                ("TOOLS_SECRETS", "secrets-manager"),
            ],
        ),
        (
            "remembered",
            vec![
                ("TOOLS_AUTH", "none"),
                ("TWILIO_API_KEY", TWILIO),
                ("TOOLS_IDEMPOTENCY", "dynamodb"),
                ("TOOLS_IDEMPOTENCY_TABLE", "calls"),
            ],
        ),
        (
            "users",
            vec![
                ("TOOLS_AUTH", "none"),
                ("TOOLS_GOOGLE_CLIENT_ID", "client-id"),
                ("TOOLS_GOOGLE_CLIENT_SECRET", "client-Xmark-0123456789"),
                (
                    "TOOLS_AUTHORIZATION_KEY",
                    "key-Xmark-0123456789-0123456789-0123",
                ),
                ("TOOLS_AUTHORIZATION_TABLE", "calls"),
            ],
        ),
        (
            "aws-json",
            vec![
                ("TOOLS_AUTH", "none"),
                ("TOOLS_SECRETS", "secrets-manager"),
                ("TOOLS_SECRETS_JSON", "no-json"),
            ],
        ),
    ]
}

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn no_event_brings_a_secret_to_light() {
    let emulator = Emulator::start().await;
    let gate = emulator.gate().await;
    put_secrets(&gate).await;
    let stub = Stub::start().await;
    let collector = Collector::start().await;
    let file = Scratch::new("dotenv");
    let lines = format!("TWILIO_API_KEY={TWILIO}\nTOOLS_API_KEY={KEY}\nTOOLS_JWT_SECRET={JWT}\n");
    fs::write(&file.0, lines).unwrap();
    let broken = Scratch::new("no-dotenv");
    fs::write(&broken.0, MARK).unwrap();
    let mut events = marked_events();
    events.extend(special_events());
    let (url, aws, spans) = (stub.url(), gate.url(), collector.url());
    let always = [
        ("TOOLS_METRICS", "cloudwatch"),
        ("TWILIO_URL", &*url),
        ("GMAIL_URL", &*url),
        ("AWS_ENDPOINT_URL", &*aws),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "AKIA0123456789"),
        ("AWS_SECRET_ACCESS_KEY", "aws-Xmark-0123456789"),
        ("AWS_SESSION_TOKEN", "session-Xmark-0123456789"),
        ("TOOLS_BASE_PATH", "/agents"),
    ];
    let file = file.0.to_str().unwrap();
    let broken = broken.0.to_str().unwrap();
    gate.make_table("calls").await;
    for (what, environment) in choices(file, broken) {
        let environment = [&always[..], &environment].concat();
        let printed = search(what, toolbox(), &events, &environment).await;
        // The secrets were read, where they are to be found.
        let is_sent = |line: &String| {
            line.contains("\"tool\":\"SMS.Send\"") && line.contains("\"outcome\":\"success\"")
        };
        let sent = printed.iter().filter(|line| is_sent(line)).count();
        assert_eq!(
            sent > 0,
            ["open", "remembered", "keys", "aws"].contains(&what),
            "{what}"
        );
        let by_token = printed
            .iter()
            .any(|line| line.contains("jwt TOOLS_JWT_SECRET user_123"));
        assert_eq!(by_token, ["keys", "aws"].contains(&what), "{what}");
    }
    assert_table_unmarked(&gate).await;
    let exporting_to = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*spans),
        ("TOOLS_AUTH", "none"),
    ];
    let environment = [&always[..], &exporting_to].concat();
    search("spans", exporting(), &events, &environment).await;
    let exported = collector.bodies();
    assert!(exported.len() > events.len() / 2, "spans are exported");
    assert_unmarked(
        "spans",
        exported
            .iter()
            .map(|body| String::from_utf8_lossy(body).into_owned()),
    );
    gate.refuse(400, "AccessDeniedException", "not authorized");
    let denied = [("TOOLS_AUTH", "none"), ("TOOLS_SECRETS", "secrets-manager")];
    let environment = [&always[..], &denied].concat();
    search("denied", toolbox(), &events, &environment).await;
}

async fn put_secrets(gate: &Gate) {
    let client = gate.secrets_manager();
    for (name, value) in [
        ("TWILIO_API_KEY", TWILIO),
        ("TOOLS_API_KEY", KEY),
        ("TOOLS_JWT_SECRET", JWT),
        ("no-json", MARK),
    ] {
        let created = client.create_secret().name(name).secret_string(value);
        created.send().await.unwrap();
    }
}

/// What is kept of calls and of users, encrypted or not.
async fn assert_table_unmarked(gate: &Gate) {
    let table = gate.dynamodb().scan().table_name("calls");
    let table = table.send().await.unwrap();
    assert!(table.count() > 0);
    let is_challenge = |item: &&std::collections::HashMap<_, _>| {
        let id: Option<&aws_sdk_dynamodb::types::AttributeValue> = item.get("id");
        id.is_some_and(|id| id.as_s().unwrap().starts_with("challenge#"))
    };
    assert!(table.items().iter().any(|item| is_challenge(&item)));
    for item in table.items() {
        let outcome = item
            .get("outcome")
            .map(|it| it.as_b().unwrap().as_ref().to_vec());
        let outcome = String::from_utf8_lossy(&outcome.unwrap_or_default()).into_owned();
        assert_unmarked("the table", [outcome, format!("{item:?}")]);
    }
}

/// After the end of the calls that leave something behind.
const LATER: Duration = Duration::from_millis(200);

/// Tools that fail with their secret in hand, in all ways that happen by mistake.
fn careless() -> Vec<Tool> {
    /// Fails with a secret in its hand.
    #[derive(Deserialize, JsonSchema)]
    struct Fail {
        /// In which way.
        way: String,
    }

    async fn fail(input: Fail, cx: Context) -> Result<String, Failure> {
        let secret = cx.secret("KEY")?;
        let token = cx.token("google")?;
        let text = || {
            format!(
                "https://api.example/?key={}&t={}",
                secret.expose(),
                token.expose()
            )
        };
        match input.way.as_str() {
            "debug" => panic!("{cx:?} {secret:?}"),
            "panic" => panic!("no answer from {}", text()),
            "expect" => {
                let answer = std::fs::read_to_string(text());
                Ok(answer.map_err(|_| text()).expect("an answer"))
            }
            "task" => {
                let text = text();
                let task = tokio::spawn(async move { panic!("in a task: {text}") });
                Ok(task
                    .await
                    .map_or_else(|_| "ended".into(), |()| "went on".into()))
            }
            "thread" => {
                let text = text();
                let thread = tokio::task::spawn_blocking(move || panic!("in a thread: {text}"));
                Ok(thread
                    .await
                    .map_or_else(|_| "ended".into(), |()| "went on".into()))
            }
            "question-mark" => Err(std::io::Error::other(text()))?,
            "message" => Err(Failure::new(text())
                .prompt(text())
                .developer_message(text())),
            "trace" => {
                let _span = tracing::info_span!("own", text = text()).entered();
                tracing::info!(key = secret.expose(), "with {}", token.expose());
                Ok(String::new())
            }
            "later-log" => {
                let text = text();
                tokio::spawn(async move {
                    tokio::time::sleep(LATER).await;
                    tracing::info!(text, "later {text:?}");
                });
                Ok(String::new())
            }
            "later-panic" => {
                let text = text();
                tokio::spawn(async move {
                    tokio::time::sleep(LATER).await;
                    panic!("later: {text}");
                });
                Ok(String::new())
            }
            "wait" => {
                tokio::time::sleep(LATER * 3).await;
                Ok(String::new())
            }
            "log" => {
                println!("{cx:?}");
                Ok(String::new())
            }
            _ => unreachable!(),
        }
    }

    let tool = Tool::new("Careless.Fail@1.0.0", fail);
    vec![tool.secret("KEY").authorization("google", ["mail"])]
}

/// Not a test by itself: the function that the next test runs as a process of its own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "is started by the test below"]
async fn careless_function() {
    if runs_as_function() {
        serve(Toolkit::new(careless()).unwrap()).await.unwrap();
    }
}

#[tokio::test]
async fn a_careless_tool_brings_no_secret_to_light() {
    let ways = [
        "debug",
        "panic",
        "expect",
        "task",
        "thread",
        "question-mark",
        "message",
        "log",
        "trace",
        "later-log",
        "later-panic",
        "wait",
    ];
    let call = |way: &str, secrets: Value| {
        let mut event = event("calculator/add.header-form");
        let token = json!([{"id": "google", "token": "token-Xmark-01234567"}]);
        let context = json!({"authorization": token, "secrets": secrets});
        let input = json!({"way": way});
        let body = json!({"tool_id": "Careless.Fail", "input": input, "context": context});
        event["body"] = body.to_string().into();
        event
    };
    let given = json!([{"id": "KEY", "value": "given Xmark \"0123\""}]);
    let events = ways
        .iter()
        .flat_map(|way| [call(way, json!([])), call(way, given.clone())]);
    let events: Vec<_> = events.collect();
    let collector = Collector::start().await;
    let url = collector.url();
    for format in ["JSON", "Text"] {
        let function = function("leaks::careless_function");
        let environment = [
            ("TOOLS_AUTH", "none"),
            ("KEY", "stored-Xmark-0123456789"),
            ("AWS_LAMBDA_LOG_FORMAT", format),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url),
        ];
        let printed = search("careless", function, &events, &environment).await;
        let traced = printed.iter().filter(|line| line.contains("with [secret]"));
        assert_eq!(traced.count(), 2, "{format}");
        let later = printed.iter().filter(|line| line.contains("later "));
        let later: Vec<_> = later.collect();
        assert_eq!(later.len(), 2, "{format}");
        for line in later {
            assert_eq!(line.matches("key=[secret]&t=[secret]").count(), 2, "{line}");
        }
        // Six ways to panic, each with a secret from the call and from the environment.
        let panics: Vec<_> = printed
            .iter()
            .filter(|line| line.contains("a tool panicked"))
            .collect();
        assert_eq!(panics.len(), 12, "{format}");
        for panic in panics {
            let shows_type_only = panic.contains("Secret(…)");
            assert!(panic.contains("[secret]") || shows_type_only, "{panic}");
        }
    }
    // Nor in the spans that it makes.
    let own = collector.span("own").await;
    let text = attribute(&own.attributes, "text").unwrap();
    assert_eq!(text, "https://api.example/?key=[secret]&t=[secret]");
    let exported = collector.bodies().into_iter();
    let exported = exported.map(|body| String::from_utf8_lossy(&body).into_owned());
    assert_unmarked("spans", exported);
}

/// A store whose value was changed after it was first read.
struct Rotated(AtomicUsize);

impl SecretStore for Rotated {
    fn read<'a>(&'a self, ids: &'a [String]) -> Reading<'a> {
        let read = self.0.fetch_add(1, Ordering::Relaxed);
        let one = move |_: &String| Ok(Some(Secret::from(format!("{MARK}-0123456789-{read}"))));
        Box::pin(async move { ids.iter().map(one).collect() })
    }

    fn place(&self, _: &str) -> String {
        String::new()
    }
}

#[tokio::test]
async fn a_rotated_secret_is_taken_out_as_well() {
    /// Shows what it got.
    #[derive(Deserialize, JsonSchema)]
    struct Show {}

    async fn show(_: Show, cx: Context) -> Result<(), Failure> {
        let first = cx.secret("KEY")?.expose().to_owned();
        let rotated = cx.secret_refused("KEY").await.expect("another one");
        assert_ne!(rotated.expose(), first);
        Err(Failure::new("no").developer_message(format!("{first} and {}", rotated.expose())))
    }

    let tool = Tool::new("Careless.Show@1.0.0", show).secret("KEY");
    let secrets = Secrets::from_store(Rotated(AtomicUsize::default()));
    let function = Function::new(Server::new(Toolkit::new([tool]).unwrap()).secrets(secrets));
    let mut event = event("calculator/add.header-form");
    event["body"] = json!({"tool_id": "Careless.Show"}).to_string().into();
    let answer = function.answer(&event.to_string()).await.unwrap();
    assert_eq!(
        answer.body["error"]["developer_message"],
        "[secret] and [secret]"
    );
}
