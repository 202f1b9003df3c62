//! The client context of an invocation: what its invoker sends besides the event.
//!
//! Any invoker can send any text, so unknown formats fail no invocation. `lambda_runtime` requires
//! objects of strings, although services send other values too.

use std::collections::HashMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_http::lambda_runtime::Context;
use serde_json::{json, value::RawValue};

/// The beginning of the names of what an AgentCore Gateway sends.
pub(super) const AGENTCORE: &str = "bedrockAgentCore";

/// The fields of an object. Their values are not parsed, so that none is invalid or too deep.
pub(super) type Fields<'a> = HashMap<String, &'a RawValue>;

/// Reads a client context as far as `Context` has a place for it. A value that is not a string
/// becomes its JSON text.
pub(crate) fn read_client_context(header: &[u8], context: &mut Context) {
    // cargo-lambda's emulator encodes it; JSON is never base64.
    let decoded = BASE64_STANDARD.decode(header);
    // An invalid byte in one value must not hide the other fields.
    let header = String::from_utf8_lossy(decoded.as_deref().unwrap_or(header));
    let whole = fields_in(&header);
    let is_object = whole.is_some();
    let mut fields = whole.unwrap_or_default();
    let mut texts = |name| {
        let object = fields.remove(name)?;
        Some(fields_in(object.get()).map(texts_of))
    };
    let custom = texts("custom");
    let is_unread = !is_object || matches!(custom, Some(None));
    let mut custom = custom.flatten().unwrap_or_default();
    let environment = texts("environment").flatten().unwrap_or_default();
    let client = texts("client")
        .flatten()
        .map(|it| serde_json::from_value(json!(it)));
    fields.retain(|name, _| is_of_agentcore(name));
    custom.extend(texts_of(fields));
    // Otherwise, the fields of an event that a model chose would decide what it is.
    if is_unread && header.to_lowercase().contains(&AGENTCORE.to_lowercase()) {
        custom.insert(AGENTCORE.to_owned(), String::new());
    }
    let is_known = is_object || !custom.is_empty();
    // The type's name is private.
    context.client_context = serde_json::from_str("{}").ok().filter(|_| is_known);
    if let Some(read) = &mut context.client_context {
        read.client = client.and_then(Result::ok).unwrap_or_default();
        (read.custom, read.environment) = (custom, environment);
    }
}

pub(super) fn fields_in(object: &str) -> Option<Fields<'_>> {
    serde_json::from_str(object).ok()
}

fn texts_of(fields: Fields<'_>) -> HashMap<String, String> {
    let text = |value: &RawValue| {
        serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned())
    };
    let fields = fields.into_iter();
    fields.map(|(name, value)| (name, text(value))).collect()
}

/// Returns true for the name of a field that an AgentCore Gateway sends.
pub(super) fn is_of_agentcore(name: &str) -> bool {
    let start = name.get(..AGENTCORE.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(AGENTCORE))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read(sent: &str) -> Value {
        let mut context = Context::default();
        read_client_context(sent.as_bytes(), &mut context);
        json!(context.client_context)
    }

    #[test]
    fn values_that_are_not_strings_become_their_json() {
        let client = json!({"installationId": "i", "appTitle": "t", "appVersionName": "v",
            "appVersionCode": "c", "appPackageName": "p"});
        let sent = json!({
            "client": client,
            "custom": {"a": "text", "b": {"c": [1]}, "d": null},
            "environment": {"locale": "en", "n": 1},
            "bedrockagentcoreX": true,
            "other": 1,
        });
        let custom = json!({"a": "text", "b": r#"{"c":[1]}"#, "d": "null",
            "bedrockagentcoreX": "true"});
        let environment = json!({"locale": "en", "n": "1"});
        let expected = json!({"client": client, "custom": custom, "environment": environment});
        assert_eq!(read(&sent.to_string()), expected);
        let encoded = BASE64_STANDARD.encode(sent.to_string());
        assert_eq!(read(&encoded), expected);
        for nothing in ["", "[]", "null", "\"a\"", "{\"a\":"] {
            assert_eq!(read(nothing), Value::Null, "{nothing}");
        }
        let empty = read(r#"{"custom": 1, "client": {"appTitle": 1}}"#);
        assert_eq!(empty["custom"], json!({}));
    }
}
