//! Marked secrets, for every place where a client or the environment can set one, and the search
//! for their mark.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    lambda::{event, invoke_on},
    repository,
};

/// The mark: part of every secret value, and of nothing else.
pub const MARK: &str = "Xmark";

/// A marked API key.
pub const KEY: &str = "key-Xmark-of-today-0123456789";
/// A marked secret that signs JWTs.
pub const JWT: &str = "jwt-Xmark-0123456789abcdef0123456789";
/// A marked secret of a tool.
pub const TWILIO: &str = "AC00000000000000000000000000000000:token-Xmark-01234567:+15005550006";

/// Returns all events of the repository, with a marked value wherever a client can put a secret.
pub fn marked_events() -> Vec<Value> {
    let mut events = Vec::new();
    let mut folders = vec![repository("events")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if is_event(&path) {
                events.push(marked(&path));
            }
        }
    }
    events
}

fn is_event(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let is_beside = |end: &&str| name.ends_with(*end);
    name.ends_with(".json")
        && ![".expected.json", ".client-context.json"]
            .iter()
            .any(is_beside)
}

fn marked(path: &Path) -> Value {
    let mut event: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    if !event.is_object() {
        return event;
    }
    for headers in ["headers", "multiValueHeaders"] {
        for (name, value) in event[headers].as_object_mut().into_iter().flatten() {
            match value {
                Value::String(text) => *text = marked_header(name, text),
                Value::Array(texts) => {
                    for text in texts {
                        if let Value::String(text) = text {
                            *text = marked_header(name, text);
                        }
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
        // The signature is the secret part of a JWT.
        "authorization" if is_jwt => format!("{text}{MARK}"),
        // Anything else is a key: a correct one stays correct.
        "authorization" | "oxp-api-key" => {
            let right = text.replace("the-key-of-today", KEY);
            let wrong = format!("{text} wrong-{MARK}");
            if right.contains(KEY) { right } else { wrong }
        }
        _ => text.to_owned(),
    }
}

/// Returns events with secrets in unexpected places, and events with valid credentials.
pub fn special_events() -> Vec<Value> {
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

/// Panics if a text contains the mark.
pub fn assert_unmarked(what: &str, texts: impl IntoIterator<Item = String>) {
    for text in texts {
        assert!(!text.contains(MARK), "{what}: {text}");
    }
}

/// A file that is deleted when dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Returns a path in the temporary folder; the file is not created yet.
    pub fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("{name}-{}", std::process::id())))
    }

    /// Returns its content.
    pub fn text(&self) -> String {
        fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns a JWT that is valid for an hour.
pub fn token(secret: &str) -> String {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let claims = json!({"sub": "user_123", "exp": now.as_secs() + 3600});
    let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
}

/// Runs a function on events and searches its reports and its output for marks.
///
/// Returns the lines it printed.
pub async fn search(
    what: &str,
    mut command: Command,
    events: &[Value],
    environment: &[(&str, &str)],
) -> Vec<String> {
    let stderr = Scratch::new(&format!("stderr-{what}"));
    command.stderr(fs::File::create(&stderr.0).unwrap());
    let limit = Some(Duration::from_secs(10));
    let events: Vec<_> = events.iter().map(|event| (event.clone(), limit)).collect();
    let mut variables = vec![
        ("AWS_LAMBDA_LOG_LEVEL", "trace"),
        ("RUST_LOG", "trace"),
        ("RUST_BACKTRACE", "1"),
    ];
    variables.extend(environment);
    let (reports, printed) = invoke_on(&mut command, &events, &variables).await;
    assert_eq!(reports.len(), events.len());
    assert!(printed.len() > events.len(), "{what}: nothing is logged");
    assert!(
        printed.iter().any(|line| line.contains("TRACE")),
        "{what}: nothing is logged at TRACE"
    );
    assert_unmarked(
        what,
        reports.iter().map(|(_, response, _)| response.to_string()),
    );
    assert_unmarked(what, printed.clone());
    assert_unmarked(what, [stderr.text()]);
    printed
}
