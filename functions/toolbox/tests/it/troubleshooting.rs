//! The messages in `docs/troubleshooting.md`, each of which a program says today.
//!
//! The programs are started with what their readers do wrong. The responses in `events/` count, too:
//! another test compares them with those of the program. `long/claude_code.rs` has those of Claude Code.

use std::{fs, net::TcpListener, process::Command, time::Duration};

use lambda_tools::{Failure, Tool, Toolkit};
use serde_json::{Value, json};
use test_support::{
    aws::{CREDENTIALS, emulated},
    call_at,
    documents::quoted,
    files_below,
    lambda::{LONG, invoke_on},
    repository,
};

use crate::{
    settings::error_with,
    sign_in::variables,
    support::{Running, faults, toolbox},
};

/// Returns the messages in the first columns of the page's tables. The table of what others say has
/// none.
fn messages() -> Vec<String> {
    let page = fs::read_to_string(repository("docs/troubleshooting.md")).unwrap();
    let mut messages = Vec::new();
    for table in page.split("\n\n").filter(|it| it.starts_with("| ")) {
        let others = ["| `claude mcp list` shows ", "| what happens "];
        if others.iter().any(|it| table.starts_with(it)) {
            continue;
        }
        for line in table.lines().skip(2) {
            let found = quoted(line.split(" | ").next().unwrap());
            assert!(!found.is_empty(), "{line}");
            messages.extend(found);
        }
    }
    messages
}

/// Returns true if a text contains a message. In the message, `…` matches any text.
fn contains(text: &str, message: &str) -> bool {
    let mut rest = Some(text);
    for part in message.split('…') {
        rest = rest.and_then(|it| Some(it.split_once(part)?.1));
    }
    rest.is_some()
}

/// Compiles the library without its dependencies, whose absence causes further errors.
fn compiler() -> String {
    let name = format!("troubleshooting-{}.rmeta", std::process::id());
    let output = std::env::temp_dir().join(name);
    let mut rustc = Command::new("rustc");
    rustc.current_dir(repository(""));
    rustc.args(["--edition", "2024", "--crate-type", "lib", "src/lib.rs"]);
    rustc.args(["-C", "panic=abort", "--emit", "metadata", "-o"]);
    let said = rustc.arg(&output).output().unwrap().stderr;
    let _ = fs::remove_file(output);
    String::from_utf8(said).unwrap()
}

fn mistake_in_a_tool(description: &str) -> String {
    let input = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
    let tool = Tool::dynamic("A.B@1.0.0", description, input, json!({}), nothing);
    Toolkit::new([tool]).err().unwrap().to_string()
}

/// Returns the line with this text that the local server prints.
fn line_with(text: &str, variables: &[(&str, &str)]) -> String {
    let mut command = toolbox();
    command.env("PORT", "0").envs(variables.iter().copied());
    Running::start(&mut command).line_with(text, 20)
}

/// Returns the texts in the expected responses, but for those of stores that a file describes.
fn events() -> Vec<String> {
    let mut texts = Vec::new();
    for path in files_below("events") {
        let path = path.to_str().unwrap();
        if path.ends_with(".expected.json") && !path.contains("/secrets/") {
            let response = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            collect_texts(&response, &mut texts);
        }
    }
    texts
}

fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|it| collect_texts(it, texts)),
        Value::Object(fields) => fields.values().for_each(|it| collect_texts(it, texts)),
        _ => {}
    }
}

async fn text_of(request: reqwest::RequestBuilder) -> String {
    request.send().await.unwrap().text().await.unwrap()
}

/// Returns the response to a call.
async fn call(url: &str, tool: &str, input: Value) -> String {
    let body = json!({"tool_id": tool, "call_id": "call-1", "input": input});
    let request = reqwest::Client::new().post(format!("{url}/tools/call"));
    text_of(request.body(body.to_string())).await
}

async fn sms(url: &str) -> String {
    let input = json!({"to": "+15005550006", "message": "Hi"});
    call(url, "SMS.Send", input).await
}

async fn local_servers() -> Vec<String> {
    let client = reqwest::Client::new();
    let secret = "jwt-secret-of-today-0123456789abcdef";
    let mut keyed = toolbox();
    keyed.env("TOOLS_AUTH", "api-key,jwt");
    keyed.env("TOOLS_API_KEY", "the-key-of-today");
    let (running, url) = Running::serving(keyed.env("TOOLS_JWT_SECRET", secret));
    let token = |claims: Value| {
        let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
    };
    let far = 4_000_000_000_u64;
    let list = || client.get(format!("{url}/tools"));
    let mut said = vec![
        text_of(list()).await,
        text_of(list().header("oxp-api-key", "another")).await,
        text_of(list().bearer_auth(token(json!({"sub": "u", "exp": 1})))).await,
        text_of(list().bearer_auth(token(json!({"sub": "u", "nbf": far, "exp": far})))).await,
    ];
    tokio::time::sleep(Duration::from_millis(200)).await;
    said.extend(running.end());

    let (running, url) = Running::serving(toolbox().env("TOOLS_AUTH", "api-key"));
    text_of(client.get(format!("{url}/tools")).bearer_auth("any")).await;
    // An alarm counts errors: the owner has to do something.
    let line = running.line_with("a secret for authentication", 5);
    assert!(line.contains("ERROR"), "{line}");
    said.push(running.line_with("unauthenticated", 5));

    let (_running, url) = Running::serving(&mut toolbox());
    let mcp = || client.post(format!("{url}/mcp")).body("{}");
    let json = ("content-type", "application/json");
    said.extend([
        text_of(client.get(&url).header("host", "tools.internal")).await,
        text_of(mcp()).await,
        text_of(mcp().header(json.0, json.1).header("accept", "text/html")).await,
        sms(&url).await,
    ]);
    said
}

async fn faulty_tools() -> Vec<String> {
    let (running, url) = Running::serving(faults().env("KEY", "key-0123456789"));
    let mut said = vec![
        call(&url, "Fault.Do", json!({"kind": "block"})).await,
        call(&url, "Fault.Once", json!({"kind": "panic"})).await,
    ];
    // More than the 16 MiB of outcomes that a process keeps.
    for number in 0..18 {
        let input = json!({"__proto__": "x".repeat(1_000_000)});
        let id = format!("echo-{number}");
        let body = json!({"tool_id": "Hostile.Echo", "call_id": id, "input": input});
        call_at(&url, &body).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    said.extend(running.end());
    said
}

async fn stores() -> Vec<String> {
    let (_emulator, proxy) = emulated().await;
    let serving = |settings: &[(&str, &str)]| {
        let mut command = toolbox();
        command.envs(CREDENTIALS).envs(settings.iter().copied());
        Running::serving(command.env("AWS_ENDPOINT_URL", proxy.url()))
    };
    let calls = [
        ("TOOLS_IDEMPOTENCY", "dynamodb"),
        ("TOOLS_IDEMPOTENCY_TABLE", "nowhere"),
    ];
    let ring = async |url: &str| {
        let input = json!({"doorbell_id": "doorbell42"});
        call(url, "Doorbell.Ring", input).await
    };
    let (_table, table) = serving(&calls);
    let mut said = vec![ring(&table).await];
    // The emulator allows everything.
    for denied in [
        "User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform this",
        "Access to KMS is not allowed",
    ] {
        proxy.fail_with(400, "AccessDeniedException", denied);
        let (_secrets, secrets) = serving(&[("TOOLS_SECRETS", "secrets-manager")]);
        said.extend([ring(&table).await, sms(&secrets).await]);
    }
    said
}

async fn on_lambda() -> Vec<String> {
    let events = [
        // The console's test event.
        json!({"key1": "value1", "key2": "value2", "key3": "value3"}),
        json!({"tool_id": "Calculator.Add", "input": {"a": 1, "b": 2}}),
    ];
    let environment = [
        ("TOOLS_AUTH", "none"),
        ("TOOLS_EVENTS", "function-url"),
        ("TOOLS_QUOTAS", "all=9/day"),
    ];
    let events = events.map(|event| (event, LONG));
    let (reports, mut said) = invoke_on(&mut toolbox(), &events, &environment).await;
    let environment = [("TOOLS_AUTH", "none"), ("LONG_TOOLS", "1")];
    said.extend(invoke_on(&mut faults(), &events[..1], &environment).await.1);
    said.extend(reports.iter().map(|(_, answer, _)| answer.to_string()));
    said
}

/// Nothing listens at the provider.
async fn sign_in_pages() -> Vec<String> {
    let variables = variables("http://127.0.0.1:9");
    let (_running, url) = Running::serving(toolbox().envs(variables));
    let client = reqwest::Client::new();
    let registration = json!({"redirect_uris": ["http://localhost/callback"]});
    let registered = client
        .post(format!("{url}/register"))
        .header("content-type", "application/json")
        .body(registration.to_string());
    let registered: Value = serde_json::from_str(&text_of(registered).await).unwrap();
    let authorize = |id: &str| {
        let redirect = ("redirect_uri", "http://localhost/other");
        let query = [("client_id", id), ("response_type", "code"), redirect];
        client.get(format!("{url}/authorize")).query(&query)
    };
    let callback = format!("{url}/authorization/openid/callback?code=1&state=sign-in.1");
    vec![
        text_of(authorize(registered["client_id"].as_str().unwrap())).await,
        text_of(authorize("of-another-server")).await,
        text_of(client.get(callback)).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs what sam build makes, and moto; run tests/all"]
async fn programs_say_every_message_of_the_page() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let github = "TOOLS_AUTH=sign-in; TOOLS_SIGN_IN_PROVIDER=github; TOOLS_SIGN_IN_CLIENT_ID=id";
    let without_key = [
        ("TOOLS_AUTH", "api-key"),
        ("TOOLS_SECRETS_FILE", "nowhere.env"),
    ];
    let mut said = vec![
        compiler(),
        mistake_in_a_tool(""),
        mistake_in_a_tool("Says something."),
        error_with(&format!("PORT={port}")),
        error_with("AWS_LAMBDA_RUNTIME_API=127.0.0.1:9"),
        error_with("HOST=0.0.0.0"),
        error_with("TOOLS_SECRETS=parameter-store"),
        error_with(github),
        line_with("TOOLS_ATUH", &[("TOOLS_ATUH", "none")]),
        line_with("is stored", &without_key),
    ];
    said.extend(events());
    said.extend(local_servers().await);
    said.extend(faulty_tools().await);
    said.extend(stores().await);
    said.extend(on_lambda().await);
    said.extend(sign_in_pages().await);
    for message in messages() {
        let is_said = said.iter().any(|text| contains(text, &message));
        assert!(is_said, "nobody says {message:?}");
    }
}
