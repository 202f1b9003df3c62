//! Messages of the compiler, the toolkit, and the programs on the developer's machine.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::Command,
    time::{Duration, SystemTime},
};

use lambda_tools::{Failure, Tool, Toolkit};
use serde_json::{Value, json};

use crate::support::{Running, faults, repository, toolbox};

/// Texts, each of which one program has said at once.
pub(super) type Said = Vec<String>;

/// Compiles the library without its dependencies, whose absence causes further errors.
pub(super) fn compiled() -> Said {
    let mut rustc = Command::new("rustc");
    rustc.current_dir(repository(""));
    rustc.args(["--edition", "2024", "--crate-type", "lib", "src/lib.rs"]);
    rustc.args(["-C", "panic=abort", "--emit", "metadata", "-o"]);
    let name = format!("troubleshooting-{}.rmeta", std::process::id());
    let output = std::env::temp_dir().join(name);
    let said = rustc.arg(&output).output().unwrap().stderr;
    let _ = fs::remove_file(output);
    vec![String::from_utf8(said).unwrap()]
}

pub(super) fn tools() -> Said {
    let tool = |description: &str| {
        let input = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
        Tool::dynamic("A.B@1.0.0", description, input, json!({}), nothing)
    };
    let mistakes = ["", "Says something."].map(|it| Toolkit::new([tool(it)]).err().unwrap());
    mistakes.map(|it| it.to_string()).to_vec()
}

fn error_of(variables: &[(&str, &str)]) -> String {
    let mut command = toolbox();
    let output = command.env("PORT", "0").envs(variables.iter().copied());
    let output = output.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{variables:?}");
    String::from_utf8(output.stderr).unwrap()
}

pub(super) fn starts() -> Said {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut all = vec![
        error_of(&[("PORT", &port)]),
        error_of(&[("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9")]),
        error_of(&[("HOST", "0.0.0.0")]),
        error_of(&[("TOOLS_SECRETS", "parameter-store")]),
    ];
    let github = [
        ("TOOLS_AUTH", "sign-in"),
        ("TOOLS_SIGN_IN_PROVIDER", "github"),
        ("TOOLS_SIGN_IN_CLIENT_ID", "id"),
    ];
    all.push(error_of(&github));
    all
}

/// Returns the line with this text that the local server prints.
fn line_with(text: &str, variables: &[(&str, &str)]) -> String {
    let mut command = toolbox();
    command.env("PORT", "0").envs(variables.iter().copied());
    Running::start(&mut command).line_with(text, 20)
}

pub(super) fn warnings() -> Said {
    let nowhere = ("TOOLS_SECRETS_FILE", "nowhere.env");
    vec![
        line_with("TOOLS_ATUH", &[("TOOLS_ATUH", "none")]),
        line_with("is stored", &[("TOOLS_AUTH", "api-key"), nowhere]),
    ]
}

/// Returns the texts in the expected responses, but for those of stores that a file describes.
pub(super) fn events() -> Said {
    let mut texts = Vec::new();
    for folder in fs::read_dir(repository("events")).unwrap() {
        let folder = folder.unwrap().path();
        if folder.is_dir() && !folder.ends_with("secrets") {
            for file in fs::read_dir(folder).unwrap() {
                collect_response(&file.unwrap().path(), &mut texts);
            }
        }
    }
    texts
}

fn collect_response(file: &Path, texts: &mut Said) {
    if file.to_string_lossy().ends_with(".expected.json") {
        let response: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        collect_texts(&response, texts);
    }
}

fn collect_texts(value: &Value, texts: &mut Said) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|it| collect_texts(it, texts)),
        Value::Object(fields) => fields.values().for_each(|it| collect_texts(it, texts)),
        _ => {}
    }
}

pub(super) async fn text_of(request: reqwest::RequestBuilder) -> String {
    request.send().await.unwrap().text().await.unwrap()
}

/// Returns the response to a call.
pub(super) async fn call(url: &str, tool: &str, input: Value) -> String {
    let body = json!({"tool_id": tool, "call_id": "call-1", "input": input});
    let request = reqwest::Client::new().post(format!("{url}/tools/call"));
    text_of(request.body(body.to_string())).await
}

/// Returns a token that is valid between these times, in seconds from now.
fn token(secret: &str, from: i64, to: i64) -> String {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let at = |seconds: i64| now.saturating_add_signed(seconds);
    let claims = json!({"sub": "user-1", "nbf": at(from), "exp": at(to)});
    let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
}

pub(super) async fn local_servers() -> Said {
    let client = reqwest::Client::new();
    let secret = "jwt-secret-of-today-0123456789abcdef";
    let mut keyed = toolbox();
    keyed.env("TOOLS_AUTH", "api-key,jwt");
    keyed.env("TOOLS_API_KEY", "the-key-of-today");
    let (running, url) = Running::serving(keyed.env("TOOLS_JWT_SECRET", secret));
    let list = || client.get(format!("{url}/tools"));
    let mut said = vec![
        text_of(list()).await,
        text_of(list().header("oxp-api-key", "another")).await,
        text_of(list().bearer_auth(token(secret, -900, -600))).await,
        text_of(list().bearer_auth(token(secret, 600, 900))).await,
    ];
    tokio::time::sleep(Duration::from_millis(200)).await;
    said.extend(running.end());

    let mut keyless = toolbox();
    let (running, url) = Running::serving(keyless.env("TOOLS_AUTH", "api-key"));
    text_of(client.get(format!("{url}/tools")).bearer_auth("any")).await;
    said.push(running.line_with("unauthenticated", 5));

    let (_running, url) = Running::serving(&mut toolbox());
    let mcp = || client.post(format!("{url}/mcp")).body("{}");
    let json = ("content-type", "application/json");
    said.extend([
        text_of(client.get(&url).header("host", "tools.internal")).await,
        text_of(mcp()).await,
        text_of(mcp().header(json.0, json.1).header("accept", "text/html")).await,
        call(
            &url,
            "SMS.Send",
            json!({"to": "+15005550006", "message": "Hi"}),
        )
        .await,
    ]);
    said
}

pub(super) async fn faulty_tools() -> Said {
    let (running, url) = Running::serving(faults().env("KEY", "key-0123456789"));
    let mut said = vec![
        call(&url, "Fault.Do", json!({"kind": "block"})).await,
        call(&url, "Fault.Once", json!({"kind": "panic"})).await,
    ];
    // More than the 16 MiB of outcomes that a process keeps.
    for number in 0..18 {
        let input = json!({"__proto__": "x".repeat(1_000_000)});
        let body =
            json!({"tool_id": "Hostile.Echo", "call_id": format!("echo-{number}"), "input": input});
        let request = reqwest::Client::new().post(format!("{url}/tools/call"));
        text_of(request.body(body.to_string())).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    said.extend(running.end());
    said
}
