//! Recorded events: a secret that a call brings, that the store has or that is a credential is in
//! no part of the recording in any promised form, wherever the request or the response repeats it.
//!
//! The first byte of an input says where the secret comes from, the second one where it is
//! repeated; the rest is as in the target `redaction`, without its first byte.

use lambda_tools::{
    Secret, fuzzing,
    http::{HeaderValue, Request},
    testing::ExpectedResponse,
};
use serde_json::{Value, json};

use crate::{
    MemoryBound, bounded,
    redaction::{Hidden, assert_gone},
};

/// For each byte of the text with the secret: about ten texts contain it, and readings of one at a
/// time are held.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 4 << 10,
    base: 4 << 20,
};

/// The minimum length of a secret that is redacted in recordings, in bytes.
const SHORTEST: usize = 6;

pub fn run(data: &[u8]) {
    let [source, place, data @ ..] = data else {
        return;
    };
    let Some(hidden) = Hidden::of(data, SHORTEST) else {
        return;
    };
    let call = RecordedCall {
        source: source % 5,
        place: place % 6,
        secret: hidden.secret,
    };
    let text = hidden.text();
    if call.is_in_scope(&hidden, &text) {
        let length = text.len() + hidden.secret.len();
        bounded(length, BOUND, || check(&call, &hidden, &text));
    }
}

fn check(call: &RecordedCall<'_>, hidden: &Hidden<'_>, text: &str) {
    let Some((event, expected)) = call.recorded(text) else {
        return;
    };
    let bytes = Value::from(text.as_bytes()).to_string();
    let is_plain = hidden.encoded == hidden.secret.trim();
    let body = event["body"].as_str().unwrap_or_default();
    assert!(!is_plain || !body.contains(&bytes), "{bytes} in {event}");
    assert_gone(hidden, &texts_of(&event, &expected), || {
        let control = call.recorded(&hidden.text_without_secret());
        let (event, expected) = control.expect("a text without a secret is recorded too");
        texts_of(&event, &expected)
    });
}

/// A call with a secret, and a text.
struct RecordedCall<'a> {
    /// Where the secret comes from.
    source: u8,
    /// Where the text is.
    place: u8,
    secret: &'a str,
}

impl RecordedCall<'_> {
    fn is_in_scope(&self, hidden: &Hidden<'_>, text: &str) -> bool {
        // A target is split there, and so would be the secret.
        let is_split = self.place < 2 && text.contains(['&', '=', '?', '#', '/']);
        // The list of its bytes would resemble the secret.
        let is_list = self.place == 5 && hidden.encoded.contains(',');
        !is_split && !is_list
    }

    /// The recorded event and response. `None` if no HTTP request can have the text or the secret.
    fn recorded(&self, text: &str) -> Option<(Value, ExpectedResponse)> {
        let uri = uri_of(self.place, text);
        let mut request = Request::builder().method("POST").uri(uri);
        if self.place == 2 {
            request = request.header("user-agent", HeaderValue::from_str(text).ok()?);
        }
        let call = json!({"tool_id": "A.B", "input": input_of(self.place, text)});
        let (body, stored) = self.with_secret(call);
        if self.source == 4 {
            let secret = self.secret.trim();
            let value = HeaderValue::from_str(secret).ok();
            let value = value.filter(|it| !secret.contains(' ') && it.to_str().is_ok())?;
            request = request.header("x-api-key", value);
        }
        let (parts, ()) = request.body(()).ok()?.into_parts();
        let response = json!({"status": 400, "headers": {"content-type": text}, "body": {
            "message": text, text: [text, {"a": text}]}});
        let response = serde_json::from_value(response).expect("a response");
        let recording = fuzzing::recording(&parts, body.to_string().as_bytes(), stored, response);
        Some(recording.expect("a body that is JSON is recorded"))
    }

    /// The body of a call, and the secrets in the store.
    fn with_secret(&self, mut body: Value) -> (Value, Vec<(String, Secret)>) {
        let secret = self.secret;
        let mut stored = Vec::new();
        match self.source {
            0 => stored.push(("KEY".to_owned(), Secret::from(secret))),
            1 => body["context"] = json!({"secrets": [{"id": "K", "value": secret}]}),
            2 => body["context"] = json!({"authorization": [{"id": "g", "token": secret}]}),
            3 => {
                body["context"] = json!({"secrets": {"K": secret}});
                body = json!({"$schema": "urn:oxp:1.0", "request": body});
            }
            _ => {}
        }
        (body, stored)
    }
}

fn uri_of(place: u8, text: &str) -> String {
    match place {
        0 => format!("/tools/{text}/call"),
        1 => format!("/tools/call?{text}=1&x={text}"),
        _ => "/tools/call".to_owned(),
    }
}

fn input_of(place: u8, text: &str) -> Value {
    match place {
        3 => json!({"note": text}),
        4 => json!({text: [text]}),
        5 => json!({"bytes": text.as_bytes()}),
        _ => json!({}),
    }
}

/// All texts of a recording, those in the body both as they are and as JSON.
fn texts_of(event: &Value, expected: &ExpectedResponse) -> Vec<String> {
    let mut texts = Vec::new();
    add_texts(event, &mut texts);
    let expected = serde_json::to_value(expected).expect("a response is JSON");
    add_texts(&expected, &mut texts);
    if let Some(body) = event["body"].as_str() {
        let body = serde_json::from_str(body).expect("the body is JSON");
        add_texts(&body, &mut texts);
    }
    texts
}

fn add_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                texts.push(name.clone());
                add_texts(value, texts);
            }
        }
        _ => {}
    }
}
