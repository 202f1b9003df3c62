//! No secret reaches any output: bodies, headers, logs at TRACE, panics.
//!
//! Every place that can hold one holds a value with a mark in it, and everything that comes out is
//! searched for the marks.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use lambda_tools::{Context, Failure, Tool, Toolkit, serve};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    aws::Emulator,
    lambda::{event, invoke_on},
    stub::Stub,
    support::{repository, toolbox},
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
    if let Some(headers) = event["headers"].as_object_mut() {
        for (name, value) in headers {
            let text = value.as_str().unwrap_or_default();
            match name.as_str() {
                // What is no JWT becomes a key: the right one, if it was right.
                "authorization" | "oxp-api-key" if text.matches('.').count() < 2 => {
                    let right = text.replace("key-of-today", KEY);
                    let wrong = format!("{text} wrong-{MARK}");
                    let key = if right.contains(KEY) { right } else { wrong };
                    *value = key.into();
                }
                // The signature is what makes a token one.
                "authorization" => *value = format!("{text}{MARK}").into(),
                _ => {}
            }
        }
    }
    if let Some(text) = event["body"].as_str()
        && let Ok(mut body) = serde_json::from_str::<Value>(text)
    {
        mark_context(&mut body);
        event["body"] = body.to_string().into();
    }
    event
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

#[tokio::test]
#[ignore = "needs moto; run tests/all"]
async fn no_event_brings_a_secret_to_light() {
    let emulator = Emulator::start().await;
    let gate = emulator.gate().await;
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
    let stub = Stub::start().await;
    let file = Scratch::new("dotenv");
    let lines = format!("TWILIO_API_KEY={TWILIO}\nTOOLS_API_KEY={KEY}\nTOOLS_JWT_SECRET={JWT}\n");
    fs::write(&file.0, lines).unwrap();
    let broken = Scratch::new("no-dotenv");
    fs::write(&broken.0, MARK).unwrap();
    let events = marked_events();
    let (url, aws) = (stub.url(), gate.url());
    let always = [
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
    for (what, environment) in [
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
            "aws-json",
            vec![
                ("TOOLS_AUTH", "none"),
                ("TOOLS_SECRETS", "secrets-manager"),
                ("TOOLS_SECRETS_JSON", "no-json"),
            ],
        ),
    ] {
        let environment = [&always[..], &environment].concat();
        search(what, toolbox(), &events, &environment).await;
    }
    gate.refuse(400, "AccessDeniedException", "not authorized");
    let denied = [("TOOLS_AUTH", "none"), ("TOOLS_SECRETS", "secrets-manager")];
    let environment = [&always[..], &denied].concat();
    search("denied", toolbox(), &events, &environment).await;
}

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
            "question-mark" => Err(std::io::Error::other(text()))?,
            "message" => Err(Failure::new(text())
                .prompt(text())
                .developer_message(text())),
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
    if std::env::var_os("CARELESS").is_some() {
        serve(Toolkit::new(careless()).unwrap()).await.unwrap();
    }
}

#[tokio::test]
async fn a_careless_tool_brings_no_secret_to_light() {
    let ways = [
        "debug",
        "panic",
        "unwrap",
        "question-mark",
        "message",
        "log",
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
    let mut function = Command::new(std::env::current_exe().unwrap());
    function
        .args([
            "--exact",
            "leaks::careless_function",
            "--ignored",
            "--nocapture",
        ])
        .env("CARELESS", "1");
    let environment = [("TOOLS_AUTH", "none"), ("KEY", "stored-Xmark-0123456789")];
    let printed = search("careless", function, &events, &environment).await;
    let logged = |text: &str| printed.iter().filter(|line| line.contains(text)).count();
    // Three ways to panic, each with a secret from the call and from the environment.
    assert_eq!(logged("a tool panicked"), 6);
    assert!(logged("[secret]") >= 4);
}
