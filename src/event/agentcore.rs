//! Calls from an AgentCore Gateway that has the function as a Lambda target, and the client context
//! in which they come.
//!
//! The event is the arguments that a model chose. Everything else about the call is in the client
//! context, so no argument can change the tool, the caller or the user.
//!
//! Any invoker can send any text as its client context, so unknown formats fail no invocation.
//! `lambda_runtime` requires objects of strings, although services send other values too.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, header::AUTHORIZATION};
use lambda_http::lambda_runtime::Context;
use serde_json::value::RawValue;

use super::format::EventError;
use crate::{
    AgentCoreUser, Caller,
    arrival::Invocation,
    protocol::{
        agentcore::{self, GatewayCall},
        app::AppState,
        driver::Admission,
    },
    store::hash_of_texts,
};

/// A value of a header that is not text.
const UNREADABLE: &str = "\u{fffd}";

/// Returns true if a client context is from an AgentCore Gateway.
pub(super) fn is_call(context: &Context) -> bool {
    let context = context.client_context.as_ref();
    context.is_some_and(|it| it.custom.keys().any(|name| is_of_agentcore(name)))
}

/// Answers a call. IAM has admitted the gateway, so it needs no credentials.
pub(super) async fn answer(
    app: &Arc<AppState>,
    event: &str,
    context: &Context,
    invocation: Invocation,
) -> Result<Bytes, EventError> {
    let field = |name| field(&context.client_context.as_ref()?.custom, name);
    let name = field("ToolName").unwrap_or_default();
    // The names of targets have no underscores.
    let tool = name.split_once("___").map_or(name, |(_, tool)| tool);
    if tool.is_empty() {
        return Err(EventError::NoTool);
    }
    let caller = Caller::AgentCore {
        gateway: id_of(field("GatewayId")),
        target: id_of(field("TargetId")),
    };
    let headers = headers_in(field("PropagatedHeaders").unwrap_or_default());
    let mut gateway = GatewayCall {
        tool: tool.to_owned(),
        user_header: None,
    };
    let admission = match &app.agentcore_user {
        None => Admission::Admitted(caller),
        Some(AgentCoreUser::Header(name)) => {
            gateway.user_header = Some(name.clone());
            Admission::Admitted(caller)
        }
        Some(AgentCoreUser::Token(name)) => {
            let tokens = headers.get_all(name).iter();
            let credentials = tokens.map(|token| (AUTHORIZATION, token.clone()));
            Admission::Credentials(credentials.collect())
        }
    };
    let mut request = Request::new(Bytes::copy_from_slice(event.as_bytes()));
    *request.headers_mut() = headers;
    Ok(agentcore::answer(app, gateway, request, admission, invocation).await)
}

/// Returns a field by its name after `bedrockAgentCore`, which some gateways spell in lower case.
fn field<'a>(fields: &'a HashMap<String, String>, name: &str) -> Option<&'a str> {
    let has_name = |it: &str| {
        let end = it.get(AGENTCORE.len()..);
        end.is_some_and(|end| end.eq_ignore_ascii_case(name)) && is_of_agentcore(it)
    };
    let found = fields.iter().filter(|(it, _)| has_name(it));
    let found = found.min().map(|(_, value)| &**value);
    found.filter(|value| !["", "null"].contains(value))
}

/// Returns an id that can be part of other texts. The known ones have only letters, digits and
/// hyphens.
fn id_of(id: Option<&str>) -> Arc<str> {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    match id {
        None => "unknown".into(),
        Some(id) if id.len() <= 128 && id.bytes().all(is_part) => id.into(),
        Some(other) => format!("sha256-{}", hash_of_texts([other])).into(),
    }
}

/// Returns the headers in a JSON object. A value that is not valid becomes one that nobody can read:
/// the absence of a header could mean something else.
fn headers_in(json: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields_in(json).unwrap_or_default() {
        let text = serde_json::from_str(value.get()).unwrap_or(Cow::Borrowed(UNREADABLE));
        let value = HeaderValue::try_from(&*text).or_else(|_| HeaderValue::try_from(UNREADABLE));
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), value) {
            // Fails with more headers than any context has room for.
            let _ = headers.try_append(name, value);
        }
    }
    headers
}

/// The beginning of the names of what an AgentCore Gateway sends.
const AGENTCORE: &str = "bedrockAgentCore";

/// The fields of an object. Their values are not parsed, so that none is invalid or too deep.
type Fields<'a> = HashMap<String, &'a RawValue>;

/// Reads the fields of a client context in `custom`, and those of an AgentCore Gateway beside it. A
/// value that is not a string becomes its JSON text.
pub(crate) fn read_client_context(header: &[u8], context: &mut Context) {
    // cargo-lambda's emulator encodes it; JSON is never base64.
    let decoded = BASE64_STANDARD.decode(header);
    // An invalid byte in one value must not hide the other fields.
    let header = String::from_utf8_lossy(decoded.as_deref().unwrap_or(header));
    let whole = fields_in(&header);
    let is_object = whole.is_some();
    let mut fields = whole.unwrap_or_default();
    let custom = fields.remove("custom").map(|it| fields_in(it.get()));
    let is_unread = !is_object || matches!(custom, Some(None));
    let mut custom = custom.flatten().map(texts_of).unwrap_or_default();
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
        read.custom = custom;
    }
}

fn fields_in(object: &str) -> Option<Fields<'_>> {
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
fn is_of_agentcore(name: &str) -> bool {
    let start = name.get(..AGENTCORE.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(AGENTCORE))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(sent: &str) -> Value {
        let mut context = Context::default();
        read_client_context(sent.as_bytes(), &mut context);
        json!(context.client_context)
    }

    #[test]
    fn values_that_are_not_strings_become_their_json() {
        let sent = json!({
            "custom": {"a": "text", "b": {"c": [1]}, "d": null},
            "bedrockagentcoreX": true,
            "other": 1,
        });
        let expected = json!({"a": "text", "b": r#"{"c":[1]}"#, "d": "null",
            "bedrockagentcoreX": "true"});
        assert_eq!(read(&sent.to_string())["custom"], expected);
        let encoded = BASE64_STANDARD.encode(sent.to_string());
        assert_eq!(read(&encoded)["custom"], expected);
        for nothing in ["", "[]", "null", "\"a\"", "{\"a\":"] {
            assert_eq!(read(nothing), Value::Null, "{nothing}");
        }
        assert_eq!(read(r#"{"custom": 1}"#)["custom"], json!({}));
    }

    #[test]
    fn headers_that_are_not_valid_are_not_absent() {
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        let json = format!(
            r#"{{"X-User": "a\nb", "x-list": ["a"], "x y": "a", "X-user": "b", "x-deep": {deep},
                "x-surrogate": "\ud800", "x-text": "c"}}"#
        );
        let headers = headers_in(&json);
        assert_eq!(headers.get_all("x-user").iter().count(), 2);
        assert_eq!(headers["x-text"], "c");
        for name in ["x-list", "x-deep", "x-surrogate"] {
            assert!(headers[name].to_str().is_err(), "{name}");
        }
        assert_eq!(headers.len(), 6);
        for nothing in ["", "[]", "null", "{\"a\":"] {
            assert!(headers_in(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn ids_that_are_not_plain_stay_different() {
        assert_eq!(&*id_of(Some("gateway-1")), "gateway-1");
        assert_eq!(&*id_of(None), "unknown");
        let odd = [
            "gw one",
            "arn:aws:bedrock-agentcore:us-east-1:1:gateway/two",
        ];
        let odd = odd.map(|id| id_of(Some(id)));
        assert_ne!(odd[0], odd[1]);
        for id in odd {
            assert!(id.starts_with("sha256-") && !id.contains(' '), "{id}");
        }
    }
}
