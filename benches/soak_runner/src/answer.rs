//! Answers of the function, and what they are compared with.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::runtime_api::Reply;

/// The longest part of an answer that a message quotes.
const QUOTED: usize = 600;

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// 200 or 400 for a direct call, whose answer is only a body.
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// The number of requests that the store has failed meanwhile.
    pub(crate) store_failures: u64,
    is_direct: bool,
}

impl Answer {
    /// Reads a reply to an event; an error if it is not the response to an HTTP request, or to a
    /// direct call.
    pub(crate) fn of(reply: &Reply, is_direct: bool) -> Result<Self, String> {
        if reply.is_error {
            return Err(format!("the invocation failed: {}", quoted(&reply.body)));
        }
        let store_failures = reply.store_failures;
        if is_direct {
            return Ok(Self {
                status: 200,
                headers: BTreeMap::new(),
                body: reply.body.to_vec(),
                store_failures,
                is_direct,
            });
        }
        let json: Value = serde_json::from_slice(&reply.body)
            .map_err(|error| format!("not JSON ({error}): {}", quoted(&reply.body)))?;
        let status = json["statusCode"]
            .as_u64()
            .and_then(|it| it.try_into().ok());
        let status = status.ok_or_else(|| format!("no status: {}", quoted(&reply.body)))?;
        let headers = json["headers"].as_object().into_iter().flatten();
        let headers = headers.map(|(name, value)| {
            let value = value.as_str().unwrap_or_default().to_owned();
            (name.to_ascii_lowercase(), value)
        });
        let text = json["body"].as_str().unwrap_or_default();
        let body = match json["isBase64Encoded"].as_bool() {
            Some(true) => BASE64_STANDARD
                .decode(text)
                .map_err(|error| error.to_string())?,
            _ => text.as_bytes().to_vec(),
        };
        Ok(Self {
            status,
            headers: headers.collect(),
            body,
            store_failures,
            is_direct,
        })
    }

    pub(crate) fn over_http(
        status: u16,
        headers: BTreeMap<String, String>,
        body: Vec<u8>,
        store_failures: u64,
    ) -> Self {
        Self {
            status,
            headers,
            body,
            store_failures,
            is_direct: false,
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The beginning of the answer, for messages.
    pub(crate) fn quoted(&self) -> String {
        format!("{} {:?} {}", self.status, self.headers, quoted(&self.body))
    }

    /// The body without what differs from run to run, and with the JSON in MCP's texts decoded.
    fn comparable(&self) -> Value {
        let mut json = self.json();
        for pointer in ["", "/result"] {
            if let Some(object) = json.pointer_mut(pointer).and_then(Value::as_object_mut)
                && object.get("duration").is_some_and(Value::is_number)
            {
                object.remove("duration");
            }
        }
        if json.pointer("/result/structuredContent").is_some()
            && let Some(text) = json.pointer_mut("/result/content/0/text")
            && let Some(Ok(decoded)) = text.as_str().map(serde_json::from_str::<Value>)
        {
            *text = decoded;
        }
        json
    }
}

/// The one answer that a request must get.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    status: u16,
    json: Value,
    headers: Vec<(&'static str, &'static str)>,
    /// The beginning of the text for developers, if the whole text is not known.
    developer_message: Option<&'static str>,
}

/// An answer with this status and JSON.
pub(crate) fn expect(status: u16, json: Value) -> Expected {
    Expected {
        status,
        json,
        headers: Vec::new(),
        developer_message: None,
    }
}

impl Expected {
    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The text for developers begins with this; the JSON has none.
    pub(crate) fn developer_message(mut self, begin: &'static str) -> Self {
        self.developer_message = Some(begin);
        self
    }

    pub(crate) fn json_mut(&mut self) -> &mut Value {
        &mut self.json
    }

    /// Compares an answer with this one.
    pub(crate) fn judge(&self, answer: &Answer) -> Result<(), String> {
        let wrong = |what: &str| {
            let expected = quoted(self.json.to_string().as_bytes());
            Err(format!(
                "{what}; expected {} {expected}, got {}",
                self.status,
                answer.quoted()
            ))
        };
        if !answer.is_direct && answer.status != self.status {
            return wrong("another status");
        }
        for (name, value) in &self.headers {
            if answer.header(name) != *value {
                return wrong(&format!("another header {name}"));
            }
        }
        let is_replay = self
            .headers
            .iter()
            .any(|(name, _)| *name == "idempotent-replay");
        if !is_replay && answer.headers.contains_key("idempotent-replay") {
            return wrong("a replay");
        }
        let mut json = answer.comparable();
        if let Some(begin) = self.developer_message {
            // Another protocol than OXP has no text for developers.
            let text = take_developer_message(&mut json);
            if text.is_some_and(|text| !text.starts_with(begin)) {
                return wrong("another text for developers");
            }
        }
        if json != self.json {
            return wrong("another body");
        }
        Ok(())
    }
}

fn take_developer_message(json: &mut Value) -> Option<String> {
    ["", "/error", "/result/error"].iter().find_map(|pointer| {
        let object = json.pointer_mut(pointer)?.as_object_mut()?;
        let text = object.remove("developer_message")?;
        text.as_str().map(str::to_owned)
    })
}

fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(QUOTED)]);
    if body.len() > QUOTED {
        format!("{text}… ({} bytes)", body.len())
    } else {
        text.into_owned()
    }
}

/// The value in the answer to a successful call, whatever its protocol.
pub(crate) fn value_in(answer: &Answer) -> Value {
    let json = answer.json();
    let places = [
        "/result/structuredContent",
        "/result/value",
        "/value",
        "/result",
        "",
    ];
    let value = places.iter().find_map(|place| json.pointer(place));
    value.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(status: u16, headers: &Value, body: &Value) -> Answer {
        let event = json!({"statusCode": status, "headers": headers, "body": body.to_string(),
                           "isBase64Encoded": false});
        let reply = Reply {
            is_error: false,
            body: event.to_string().into(),
            latency: std::time::Duration::ZERO,
            store_failures: 0,
        };
        Answer::of(&reply, false).unwrap()
    }

    #[test]
    fn only_the_expected_answer_is_right() {
        let right =
            json!({"call_id": "a", "duration": 1.5, "success": true, "value": {"client": 3}});
        let other =
            json!({"call_id": "a", "duration": 1.5, "success": true, "value": {"client": 4}});
        let expected = expect(
            200,
            json!({"call_id": "a", "success": true, "value": {"client": 3}}),
        );
        let replayed = json!({"Idempotent-Replay": "true"});
        assert_eq!(expected.judge(&answer(200, &json!({}), &right)), Ok(()));
        assert!(expected.judge(&answer(200, &json!({}), &other)).is_err());
        assert!(expected.judge(&answer(400, &json!({}), &right)).is_err());
        assert!(expected.judge(&answer(200, &replayed, &right)).is_err());
        let replay = expected.header("idempotent-replay", "true");
        assert_eq!(replay.judge(&answer(200, &replayed, &right)), Ok(()));
        assert!(replay.judge(&answer(200, &json!({}), &right)).is_err());
    }

    #[test]
    fn the_value_is_found_in_every_protocol() {
        let value = json!({"client": 3});
        for body in [
            json!({"call_id": "a", "success": true, "value": value}),
            json!({"$schema": "otc://1.0", "result": {"success": true, "value": value}}),
            json!({"jsonrpc": "2.0", "id": "a", "result": value, "error": null}),
            json!({"jsonrpc": "2.0", "id": 7, "result": {"structuredContent": value}}),
            value.clone(),
        ] {
            assert_eq!(value_in(&answer(200, &json!({}), &body)), value, "{body}");
        }
    }
}
