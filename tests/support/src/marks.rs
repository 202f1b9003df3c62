//! Marked secrets, for every place where a client or the environment can set one, and the search
//! for their mark.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    time::{Duration, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    files_below,
    issuer::sign_with_secret,
    lambda::{event, invoke_on},
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
    let is_event = |path: &PathBuf| {
        let name = path.to_string_lossy();
        let is_beside = [".expected.json", ".client-context.json"];
        name.ends_with(".json") && !is_beside.iter().any(|it| name.ends_with(it))
    };
    let paths = files_below("events").into_iter().filter(is_event);
    let marked = paths.map(|path| {
        let mut event = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        mark(&mut event);
        event
    });
    marked.collect()
}

fn mark(event: &mut Value) {
    for headers in ["headers", "multiValueHeaders"] {
        let headers = event.get_mut(headers).and_then(Value::as_object_mut);
        for (name, value) in headers.into_iter().flatten() {
            let values = match value {
                Value::Array(values) => values.as_mut_slice(),
                value => std::slice::from_mut(value),
            };
            for value in values {
                if let Value::String(text) = value {
                    *text = marked_header(name, text);
                }
            }
        }
    }
    let is_base64 = event.get("isBase64Encoded") == Some(&Value::Bool(true));
    let Some(Value::String(text)) = event.get_mut("body") else {
        return;
    };
    let decoded = STANDARD.decode(&*text).ok().filter(|_| is_base64);
    let bytes = decoded.as_deref().unwrap_or(text.as_bytes());
    if let Ok(mut body) = serde_json::from_slice(bytes) {
        mark_context(&mut body);
        let marked = body.to_string();
        let encoded = is_base64.then(|| STANDARD.encode(&marked));
        *text = encoded.unwrap_or(marked);
    }
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
    let with_body = |body: String| {
        let mut event = event("calculator/add.header-form");
        event["body"] = body.into();
        event
    };
    let secret = format!("AC1:{MARK}-0123456789:+1");
    let bodies = [
        json!({"tool_id": "SMS.Send", "secrets": [{"id": "TWILIO_API_KEY", "value": secret}]}),
        json!({"tool_id": "SMS.Send", "context": {"secrets": {"TWILIO_API_KEY": secret}}}),
        json!({"tool_id": "SMS.Send", "context": {"secrets": [secret]}}),
        json!({"tool_id": "SMS.Send", "context": {"secrets": [{"id": secret, "value": 7}]}}),
        json!({"tool_id": "SMS.Send", "input": {"to": secret, "message": secret, "key": secret}}),
    ];
    let mut events: Vec<_> = bodies.map(|it| with_body(it.to_string())).into();
    let broken = with_body(format!("{{\"tool_id\": \"SMS.Send\", \"{secret}"));
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

/// A file or a folder that is deleted when dropped.
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
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a JWT that is valid for an hour.
pub fn token(secret: &str) -> String {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let claims = json!({"sub": "user_123", "exp": now.as_secs() + 3600});
    sign_with_secret(secret, &claims)
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
    let is_traced = printed.iter().any(|line| line.contains("TRACE"));
    assert!(is_traced, "{what}: nothing is logged at TRACE");
    assert!(printed.len() > events.len(), "{what}: too little is logged");
    let responses = reports.iter().map(|(_, response, _)| response.to_string());
    assert_unmarked(what, responses);
    assert_unmarked(what, printed.clone());
    assert_unmarked(what, [stderr.text()]);
    printed
}
