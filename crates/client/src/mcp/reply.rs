//! Decoding of the response to a call.

use std::time::Duration;

use lambda_tools_core::{
    Secret,
    wire::mcp::{CALL_ID, REPLAY, RETRY_AFTER},
};
use rmcp::model::{
    CallToolResult, ContentBlock, ElicitRequestParams, InputRequest as RequestForInput,
    InputRequiredResult, MetaObject, ServerResult,
};
use serde_json::{Value, json};

use crate::{
    ClientError,
    outcome::{
        AuthorizationChallenge, CallOutcome, CallReply, InputRequest, InputRequired,
        MissingRequirements, ServerError, ToolError,
    },
};

impl CallReply {
    pub(super) fn of_result(result: ServerResult, id: &str) -> Result<Self, ClientError> {
        let (meta, outcome) = match result {
            ServerResult::CallToolResult(mut result) => {
                let meta = result.meta.take().unwrap_or_default();
                let outcome = outcome_in(result, &meta);
                (meta, outcome)
            }
            ServerResult::InputRequiredResult(mut result) => {
                let meta = result.meta.take().unwrap_or_default();
                (meta, input_required(result)?)
            }
            _ => return Err(unreadable("it is not the result of a call")),
        };
        let call_id = meta.0.get(CALL_ID).and_then(Value::as_str);
        let is_replay = meta.0.get(REPLAY).is_some_and(|it| it == true);
        Ok(Self {
            is_replay,
            ..Self::new(call_id.unwrap_or(id), outcome)
        })
    }

    /// Returns the reply to a call that the server rejected with a JSON-RPC error.
    pub(super) fn of_error(error: ClientError, id: &str) -> Result<Self, ClientError> {
        let ClientError::Rejected { message, .. } = error else {
            return Err(error);
        };
        let outcome = CallOutcome::ServerError(ServerError {
            message,
            developer_message: None,
        });
        Ok(Self::new(id, outcome))
    }
}

fn unreadable(text: &str) -> ClientError {
    ClientError::Unreadable(text.to_owned())
}

/// Returns the outcome in a result: 2026-07-28 and 2025-11-25, Tools, Tool Result.
fn outcome_in(result: CallToolResult, meta: &MetaObject) -> CallOutcome {
    if result.is_error == Some(true) {
        return tool_error(&result.content, meta);
    }
    let structured = result.structured_content.unwrap_or_default();
    CallOutcome::Value(match structured {
        Value::Null => value_of(&result.content),
        structured => structured,
    })
}

fn tool_error(content: &[ContentBlock], meta: &MetaObject) -> CallOutcome {
    let retry_after = meta.0.get(RETRY_AFTER).and_then(Value::as_u64);
    CallOutcome::ToolError(ToolError {
        message: text_of(content),
        developer_message: None,
        can_retry: retry_after.is_some(),
        retry_after: retry_after.map(Duration::from_millis),
        additional_prompt_content: None,
    })
}

/// Returns the value of a result without `structuredContent`.
fn value_of(content: &[ContentBlock]) -> Value {
    if content.is_empty() {
        return Value::Null;
    }
    if content.iter().all(|block| block.as_text().is_some()) {
        return text_of(content).into();
    }
    json!(content)
}

/// Returns the text of all blocks that have one, in lines.
fn text_of(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(ContentBlock::as_text);
    texts.map(|it| &*it.text).collect::<Vec<_>>().join("\n")
}

/// Returns the requests for input, or challenges if there are only URLs to open: 2026-07-28, Multi
/// Round-Trip Requests.
fn input_required(result: InputRequiredResult) -> Result<CallOutcome, ClientError> {
    let requests = result.input_requests.unwrap_or_default().into_iter();
    let required = InputRequired {
        requests: requests.map(input_request).collect::<Result<_, _>>()?,
        request_state: result.request_state.map(Secret::from),
    };
    Ok(challenges_in(&required).unwrap_or(CallOutcome::InputRequired(required)))
}

fn input_request((key, request): (String, RequestForInput)) -> Result<InputRequest, ClientError> {
    let params = match request {
        RequestForInput::Elicitation(request) => Some(request.params),
        _ => None,
    };
    match params {
        Some(ElicitRequestParams::UrlElicitationParams { message, url, .. }) => {
            Ok(InputRequest::Url { key, message, url })
        }
        Some(ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        }) => Ok(InputRequest::Form {
            key,
            message,
            schema: json!(requested_schema),
        }),
        _ => Err(unreadable("it requires what this client does not offer")),
    }
}

/// Returns the missing permissions, if each request is a URL.
fn challenges_in(required: &InputRequired) -> Option<CallOutcome> {
    let mut messages = Vec::new();
    let mut challenges = Vec::new();
    for request in &required.requests {
        let InputRequest::Url { key, message, url } = request else {
            return None;
        };
        messages.push(message.as_str());
        challenges.push(AuthorizationChallenge {
            id: key.clone(),
            url: url.clone(),
            check_url: String::new(),
        });
    }
    (!challenges.is_empty()).then(|| {
        CallOutcome::MissingRequirements(MissingRequirements {
            message: messages.join(" "),
            developer_message: None,
            challenges,
            user_id: false,
            secrets: Vec::new(),
            request_state: required.request_state.clone(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry::RetryAdvice;

    fn reply_to(result: Value) -> CallReply {
        CallReply::of_result(serde_json::from_value(result).unwrap(), "id-1").unwrap()
    }

    #[test]
    fn the_value_is_the_structured_content_or_else_the_text() {
        let value = |result| reply_to(result).outcome.value().unwrap();
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        let structured = json!({"content": [text("15")], "structuredContent": {"result": 15}});
        assert_eq!(value(structured), json!({"result": 15}));
        assert_eq!(value(json!({"structuredContent": [1]})), json!([1]));
        assert_eq!(
            value(json!({"content": [text("a"), text("b")], "isError": false})),
            "a\nb"
        );
        assert_eq!(value(json!({"content": []})), json!(null));
        let mixed = json!([text("a"), image]);
        assert_eq!(value(json!({"content": mixed})), mixed);
    }

    #[test]
    fn failures_name_the_time_to_wait() {
        let failed = json!({"isError": true, "content": [{"type": "text", "text": "No."}],
            "_meta": {"lambda-tools/retry-after-ms": 250, "lambda-tools/call-id": "id-2",
                "lambda-tools/replay": true}});
        let reply = reply_to(failed);
        assert!(reply.is_replay && reply.call_id == "id-2");
        let wait = Some(Duration::from_millis(250));
        assert_eq!(reply.outcome.advice(), Some(RetryAdvice::Again(wait)));
        assert_eq!(reply.outcome.message(), "No.");
        let outcome = reply_to(json!({"isError": true, "content": []})).outcome;
        assert_eq!(outcome.advice(), Some(RetryAdvice::Done));
    }

    #[test]
    fn requests_for_input_are_data() {
        let url = json!({"method": "elicitation/create",
            "params": {"mode": "url", "message": "Open it.", "url": "https://a.example"}});
        let form = json!({"method": "elicitation/create", "params": {"message": "Who?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}});
        let required = |requests: Value| {
            let result = json!({"resultType": "input_required", "inputRequests": requests,
                "requestState": "marked-state"});
            reply_to(result).outcome
        };
        let outcome = required(json!({"google": url}));
        let CallOutcome::MissingRequirements(missing) = &outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(missing.message, "Open it.");
        assert_eq!(missing.challenges[0].id, "google");
        assert_eq!(missing.challenges[0].url, "https://a.example");
        assert!(!format!("{outcome:?}").contains("marked"));
        let outcome = required(json!({"a": form, "b": url}));
        let CallOutcome::InputRequired(input) = &outcome else {
            panic!("{outcome:?}")
        };
        let state = input.request_state.as_ref().unwrap().expose();
        assert_eq!(state, "marked-state");
        assert!(
            matches!(&input.requests[0], InputRequest::Form { key, message, schema }
            if key == "a" && message == "Who?" && schema["properties"]["name"]["type"] == "string")
        );
        assert!(matches!(&input.requests[1], InputRequest::Url { .. }));
        assert!(outcome.message().contains("Who? Open it."));
        assert!(matches!(required(json!({})), CallOutcome::InputRequired(_)));
    }
}
