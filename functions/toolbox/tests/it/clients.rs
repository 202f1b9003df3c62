//! External programs that call the toolbox: the published Python client, and cargo-lambda.
//!
//! They come from PyPI. `tests/all` installs them and runs these tests; a plain `cargo test` lists
//! them as ignored.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use lambda_tools::{Auth, secrets::Secrets};
use serde_json::{Value, json};
use test_support::Served;
use toolbox::Endpoints;

use crate::{
    mcp_clients,
    stub::Stub,
    support::{Running, installed, isolated, repository, server},
};

/// Serves the toolbox from this process.
async fn serve(auth: Auth, secrets: Secrets) -> Served {
    let server = server(toolbox::tools(Endpoints::default()));
    let server = server.auth(auth).secrets(secrets);
    Served::start(server.into_router().unwrap()).await
}

/// The standard output of a program. Panics with all output if the program failed.
pub(crate) fn stdout_of(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{}\n{stdout}\n{stderr}",
        output.status
    );
    stdout
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client oxp; run tests/all"]
async fn the_published_python_client_works() {
    let open = serve(Auth::none(), Secrets::none()).await;
    let key = Secrets::fixed([("KEY", "right")]);
    let closed = serve(Auth::api_key_ids(["KEY"]), key).await;
    let python = installed("python");
    let script = repository("functions/toolbox/tests/oxp_client.py");
    let run = move || {
        Command::new(python)
            .arg(script)
            .args([&open.url, &closed.url])
            .output()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    let stdout = stdout_of(&output);
    assert!(stdout.ends_with("11 checks passed\n"), "{stdout}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs cargo-lambda; run tests/all"]
async fn events_get_their_expected_responses_from_cargo_lambda() {
    let stub = Stub::start().await;
    let url = stub.url();
    tokio::task::spawn_blocking(move || invoke_all(&url))
        .await
        .unwrap();
    drop(stub);
}

fn invoke_all(stub: &str) {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
        .to_string();
    let lambda = || {
        let mut command = isolated(Command::new(installed("cargo-lambda")));
        command.arg("lambda").current_dir(repository(""));
        command
    };
    let mut watch = lambda();
    watch
        .args(["watch", "-A", "127.0.0.1", "-P", &port])
        .args(["--disable-cors", "--ignore-changes", "-p", "toolbox"])
        .env("GMAIL_URL", stub)
        .env("TWILIO_URL", stub)
        .env("TOOLS_SECRETS", "none")
        // The events share call_ids.
        .env("TOOLS_IDEMPOTENCY", "none")
        .env("TOOLS_BASE_PATH", "/agents");
    let mut watch = Running::start(&mut watch);
    wait_for(&port);
    // Over HTTP too, as a client would call the deployed function.
    let url = format!("http://127.0.0.1:{port}/tools/call");
    let body = r#"{"tool_id": "Calculator.Add@1.0.0", "input": {"a": 10, "b": 5}}"#;
    let call = reqwest::Client::new().post(url).body(body).send();
    let response = tokio::runtime::Handle::current().block_on(async { call.await?.text().await });
    let response: Value = serde_json::from_str(&response.unwrap()).unwrap();
    assert_eq!(response["value"], 15, "{response}");
    mcp_clients::check_open_server("cargo lambda", &format!("http://127.0.0.1:{port}/mcp"));
    let mut invoked = 0;
    for event in events() {
        let invoke = lambda()
            .args([
                "invoke",
                "toolbox",
                "-A",
                "127.0.0.1",
                "-P",
                &port,
                "--data-file",
            ])
            .arg(&event)
            .output();
        let answer: Value = serde_json::from_str(&stdout_of(&invoke.unwrap())).unwrap();
        compare(&event, &answer);
        invoked += 1;
    }
    assert!(invoked > 60, "{invoked}");
    watch.signal("INT");
    assert!(
        watch.ends_within(10).is_some(),
        "cargo lambda watch does not stop"
    );
}

/// The events for a server without keys and secrets.
fn events() -> Vec<PathBuf> {
    let folders = fs::read_dir(repository("events")).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path());
    let files = folders
        .filter(|folder| is_plain(folder))
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|file| file.unwrap().path());
    files
        .filter(|file| {
            let name = file.to_string_lossy();
            name.ends_with(".json") && !name.ends_with(".expected.json")
        })
        .collect()
}

/// True for a folder whose server is the toolbox without any settings.
fn is_plain(folder: &Path) -> bool {
    let Ok(text) = fs::read_to_string(folder.join("server.toml")) else {
        return false;
    };
    let description: toml::Table = text.parse().unwrap();
    let keys = ["base_path", "description", "tools"];
    let tools: toml::Value = vec!["toolbox"].into();
    description.keys().all(|key| keys.contains(&key.as_str())) && description["tools"] == tools
}

fn wait_for(port: &str) {
    let end = Instant::now() + Duration::from_secs(30);
    while std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
        assert!(Instant::now() < end, "cargo lambda watch does not listen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Compares a response with the expected one, apart from the clock and generated ids.
fn compare(event: &Path, answer: &Value) {
    let expected = fs::read_to_string(event.with_extension("expected.json")).unwrap();
    let mut expected: Value = serde_json::from_str(&expected).unwrap();
    let name = event.display();
    assert_eq!(answer["statusCode"], expected["status"], "{name}: {answer}");
    for (header, value) in expected["headers"].as_object().unwrap() {
        let answered = [
            &answer["headers"][header],
            &answer["multiValueHeaders"][header][0],
        ];
        assert!(answered.contains(&value), "{name}: {header}: {answer}");
    }
    let text = answer["body"].as_str().unwrap_or_default();
    let mut body: Value = serde_json::from_str(text).unwrap_or_default();
    // The id that a replay generates if the client sent none.
    let generated = "00000000-0000-4000-8000-000000000000";
    if expected["body"]["call_id"] == generated {
        assert_eq!(body["call_id"].as_str().map(str::len), Some(36), "{name}");
        expected["body"]["call_id"] = body["call_id"].clone();
    }
    let in_meta = "/result/_meta/lambda-tools~1call-id";
    if let Some(id) = expected["body"]
        .pointer_mut(in_meta)
        .filter(|id| **id == generated)
    {
        let answered = body.pointer(in_meta).and_then(Value::as_str).unwrap();
        assert_eq!(answered.len(), 36, "{name}");
        *id = answered.into();
    }
    blank(&mut body);
    blank(&mut expected["body"]);
    assert_eq!(body, expected["body"], "{name}");
}

fn blank(body: &mut Value) {
    let result = if body.get("result").is_some() {
        &mut body["result"]
    } else {
        body
    };
    if result.get("duration").is_some() {
        assert!(result["duration"].is_number());
        result["duration"] = json!("some");
    }
    if result["value"].get("timestamp").is_some() {
        result["value"]["timestamp"] = json!("some");
    }
    // MCP's as well, as a value and as text.
    if result["structuredContent"].get("timestamp").is_some() {
        result["structuredContent"]["timestamp"] = json!("some");
        result["content"] = json!("some");
    }
    // OpenTool's result is the value itself.
    if result.get("timestamp").is_some() {
        result["timestamp"] = json!("some");
    }
}
