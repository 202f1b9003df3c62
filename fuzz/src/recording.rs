//! Recorded events: a secret that a call brings, that the store has or that is a credential is in
//! no part of the recording in any promised encoding, wherever the request or the response repeats
//! it.
//!
//! The first byte of an input says where the secret comes from, the second one where it is
//! repeated; the rest is as in the target `redaction`.

use lambda_tools::{
    Secret,
    http::{HeaderValue, Request},
    seams::recording_of,
    testing::ExpectedResponse,
};
use serde_json::{Value, json};

use crate::{MemoryBound, bounded, redaction::Hidden};

/// The secret is searched for as in the target `redaction`, and about ten texts contain the text.
const BOUND: MemoryBound = MemoryBound {
    per_byte: 16 << 10,
    base: 4 << 20,
};

/// The placeholders that recordings use for the secret.
const PLACEHOLDERS: [&str; 4] = ["VALUE_OF_KEY", "VALUE_OF_K", "TOKEN_OF_g", "PLACEHOLDER"];

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
        place: place % 5,
        secret: hidden.secret,
    };
    let text = hidden.text();
    // A target is split there, and so would be the secret.
    if call.place < 2 && text.contains(['&', '=', '?', '#', '/']) {
        return;
    }
    let length = text.len() + hidden.secret.len();
    bounded(length, BOUND, || check(&call, &hidden, &text));
}

fn check(call: &RecordedCall<'_>, hidden: &Hidden<'_>, text: &str) {
    let left_in = |(event, expected): (Value, ExpectedResponse)| {
        hidden.left_in(&texts_of(&event, &expected), &PLACEHOLDERS)
    };
    let Some(left) = call.recorded(text).and_then(left_in) else {
        return;
    };
    // Every recording may contain it.
    let control = call.recorded(&hidden.text_without_secret());
    assert!(
        control.and_then(left_in).is_some(),
        "{left:?} of {:?} in {text:?}",
        hidden.secret
    );
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
    /// Records a text, and returns the event and the response; `None` if no HTTP request can have
    /// the text or the secret.
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
        let recording = recording_of(
            &parts,
            body.to_string().as_bytes(),
            stored,
            response,
            &mut Value::Null,
        );
        Some(recording.expect("a body that is JSON is recorded"))
    }

    /// Returns the body of a call, and the secrets in the store.
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
        _ => json!({}),
    }
}

/// Returns all texts of a recording, those in the body both as they are and as JSON.
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
