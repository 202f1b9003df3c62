//! `requestState`: the responses of earlier rounds, and the call that they belong to.
//!
//! A repeated call brings only the latest responses, and no instance remembers the others. The
//! digest ties them to one tool and one input, so that no answer can confirm another call by
//! mistake. It is not a signature: the client, which could answer in its user's name in any case,
//! could compute it too. Reference: 2026-07-28, Multi Round-Trip Requests.

use serde_json::{Map, Value, json};

use crate::{
    idempotency::fingerprint::digest_of,
    protocol::json::{self, JsonScope},
};

const STATE: JsonScope = JsonScope::Fields(&[
    ("digest", JsonScope::Scalar),
    ("responses", JsonScope::Whole),
]);

/// Identifies a call.
pub(super) fn call_of(tool: &str, input: &Value) -> String {
    digest_of(&[&tool.into(), input])
}

pub(super) fn write(call: &str, responses: &Map<String, Value>) -> String {
    let responses = Value::Object(responses.clone());
    json!({"digest": digest(call, &responses), "responses": responses}).to_string()
}

/// Reads the responses in a state that was issued for this call.
pub(super) fn read(
    state: &Value,
    call: &str,
    max_values: usize,
) -> Result<Map<String, Value>, &'static str> {
    let text = state.as_str().unwrap_or_default();
    let read = json::read(text.as_bytes(), &STATE, max_values);
    let mut state = read.map_err(|_| "'requestState' was not issued by this server.")?;
    let responses = state.get_mut("responses").map(Value::take);
    let responses = responses.unwrap_or_default();
    if state["digest"] != digest(call, &responses) {
        return Err("'requestState' was not issued for this call.");
    }
    match responses {
        Value::Object(responses) => Ok(responses),
        _ => Err("'requestState' was not issued by this server."),
    }
}

fn digest(call: &str, responses: &Value) -> String {
    digest_of(&[&call.into(), responses])
}
