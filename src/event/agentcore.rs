//! Calls from an AgentCore Gateway that has the function as a Lambda target.
//!
//! The event is the arguments that a model chose. Everything else about the call is in the client
//! context, so no argument can change the tool, the caller or the user.

use std::{collections::HashMap, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use lambda_http::lambda_runtime::Context;
use serde_json::{Map, Value, value::RawValue};

use super::{
    client_context::{AGENTCORE, is_of_agentcore},
    format::EventError,
};
use crate::{
    AgentCoreUser, Caller,
    arrival::Invocation,
    protocol::{
        AgentCoreFormat,
        admission::AppState,
        direct::{self, Admission, EventCall},
    },
};

/// The end of a target's name in `bedrockAgentCoreToolName`: the names of targets have no underscores.
const TARGET_END: &str = "___";

/// A value of a header that is not text.
const UNREADABLE: &str = "\u{fffd}";

/// A call, as the client context has it.
pub(super) struct AgentCoreCall {
    tool: String,
    caller: Caller,
    /// The headers that the gateway passes on.
    headers: HeaderMap,
}

/// Reads the call in a client context. `None` if the context is not from an AgentCore Gateway.
pub(super) fn call_in(context: &Context) -> Option<Result<AgentCoreCall, EventError>> {
    let fields = &context.client_context.as_ref()?.custom;
    if !fields.keys().any(|name| is_of_agentcore(name)) {
        return None;
    }
    let name = field(fields, "ToolName").unwrap_or_default();
    let tool = name.split_once(TARGET_END).map_or(name, |(_, tool)| tool);
    if tool.is_empty() {
        return Some(Err(EventError::NoTool));
    }
    let headers = field(fields, "PropagatedHeaders").unwrap_or_default();
    Some(Ok(AgentCoreCall {
        tool: tool.to_owned(),
        caller: Caller::AgentCore {
            gateway: id_of(field(fields, "GatewayId")),
            target: id_of(field(fields, "TargetId")),
        },
        headers: headers_in(headers),
    }))
}

/// Returns a field by its name after `bedrockAgentCore`, which some gateways spell in lower case.
fn field<'a>(fields: &'a HashMap<String, String>, name: &str) -> Option<&'a str> {
    let has_name = |it: &str| {
        let end = it.get(AGENTCORE.len()..);
        end.is_some_and(|end| end.eq_ignore_ascii_case(name)) && is_of_agentcore(it)
    };
    let found = fields.iter().filter(|(it, _)| has_name(it));
    found.min().map(|(_, value)| &**value)
}

/// Returns an id that can be part of other texts. Those of gateways and targets have only letters,
/// digits and hyphens.
fn id_of(id: Option<&str>) -> Arc<str> {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    let is_id = |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(is_part);
    id.filter(is_id).unwrap_or("unknown").into()
}

/// Returns the headers in a JSON object. A value that is not valid becomes one that nobody can read:
/// the absence of a header could mean something else.
fn headers_in(json: &str) -> HeaderMap {
    let fields: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let value = HeaderValue::try_from(value.as_str().unwrap_or(UNREADABLE));
        let value = value.or_else(|_| HeaderValue::try_from(UNREADABLE));
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), value) {
            // Fails with more headers than any context has room for.
            let _ = headers.try_append(name, value);
        }
    }
    headers
}

/// Answers a call. IAM has admitted the gateway, so it needs no credentials.
pub(super) async fn answer(
    app: &Arc<AppState>,
    call: AgentCoreCall,
    event: &str,
    invocation: Invocation,
) -> Box<RawValue> {
    let headers = call.headers;
    let (user_header, admission) = match &app.agentcore_user {
        None => (None, Admission::Admitted(call.caller)),
        Some(AgentCoreUser::Header(name)) => (Some(name.clone()), Admission::Admitted(call.caller)),
        Some(AgentCoreUser::Token(name)) => {
            let tokens = headers.get_all(name).iter();
            let credentials = tokens.map(|token| (AUTHORIZATION, token.clone())).collect();
            (None, Admission::Credentials(credentials))
        }
    };
    let call = EventCall {
        format: AgentCoreFormat::new(call.tool, user_header),
        event,
        headers,
        admission,
        invocation,
    };
    direct::answer(app, call).await.body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_are_not_valid_are_not_absent() {
        let headers =
            headers_in(r#"{"X-User": "a\nb", "x-list": ["a"], "x y": "a", "X-user": "b"}"#);
        assert_eq!(headers.get_all("x-user").iter().count(), 2);
        assert!(headers["x-user"].to_str().is_err());
        assert!(headers["x-list"].to_str().is_err());
        assert_eq!(headers.len(), 3);
        for nothing in ["", "[]", "null", "{\"a\":"] {
            assert!(headers_in(nothing).is_empty(), "{nothing}");
        }
    }
}
