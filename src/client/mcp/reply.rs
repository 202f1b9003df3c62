//! Decoding of the response to a call.

use std::time::Duration;

use serde_json::Value;

use super::message::{CALL_ID, RpcAnswer};
use crate::{
    Secret,
    client::{
        ClientError,
        outcome::{
            AuthorizationChallenge, CallOutcome, CallReply, InputRequest, InputRequired,
            MissingRequirements, ServerError, ToolError,
        },
        retry::RetryAdvice,
    },
    payload::JsonObject,
};

const REPLAY: &str = "lambda-tools/replay";
const RETRY_AFTER: &str = "lambda-tools/retry-after-ms";

impl CallReply {
    pub(super) fn of_answer(answer: RpcAnswer, call_id: &str) -> Result<Self, ClientError> {
        let mut reply = Self {
            call_id: call_id.to_owned(),
            duration: None,
            is_replay: false,
            attempts: 1,
            outcome: CallOutcome::Value(Value::Null),
        };
        let mut result = match answer {
            RpcAnswer::Result(result) => result,
            RpcAnswer::Error(error) => {
                reply.outcome = CallOutcome::ServerError(ServerError {
                    message: error.message,
                    developer_message: None,
                });
                return Ok(reply);
            }
        };
        let meta = result.swap_remove("_meta").unwrap_or_default();
        if let Some(id) = meta[CALL_ID].as_str() {
            id.clone_into(&mut reply.call_id);
        }
        reply.is_replay = meta[REPLAY] == true;
        reply.outcome = match result.get("resultType").and_then(Value::as_str) {
            None | Some("complete") => outcome_in(result, &meta)?,
            Some("input_required") => input_required(&mut result)?,
            Some(_) => return Err(unreadable("its resultType is unknown")),
        };
        Ok(reply)
    }

    /// The advice on retrying after a tool's failure.
    pub(super) fn retry_advice(&self) -> RetryAdvice {
        match &self.outcome {
            CallOutcome::ToolError(failure) if failure.can_retry => {
                RetryAdvice::Again(failure.retry_after)
            }
            _ => RetryAdvice::Done,
        }
    }
}

fn unreadable(text: &str) -> ClientError {
    ClientError::Unreadable(text.to_owned())
}

/// The outcome in a result: 2026-07-28 and 2025-11-25, Tools, Tool Result.
fn outcome_in(mut result: JsonObject, meta: &Value) -> Result<CallOutcome, ClientError> {
    let structured = result.swap_remove("structuredContent").unwrap_or_default();
    let content = match result.swap_remove("content") {
        None | Some(Value::Null) if structured.is_null() => {
            return Err(unreadable("it is not the result of a call"));
        }
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(content)) => content,
        Some(_) => return Err(unreadable("its content is not a list")),
    };
    match result.swap_remove("isError") {
        Some(Value::Bool(true)) => Ok(tool_error(&content, meta)),
        None | Some(Value::Bool(false) | Value::Null) => {
            Ok(CallOutcome::Value(if structured.is_null() {
                value_of(content)
            } else {
                structured
            }))
        }
        Some(_) => Err(unreadable("its isError is neither true nor false")),
    }
}

fn tool_error(content: &[Value], meta: &Value) -> CallOutcome {
    let text = text_of(content);
    let retry_after = meta[RETRY_AFTER].as_u64().map(Duration::from_millis);
    CallOutcome::ToolError(ToolError {
        message: if text.is_empty() {
            "The tool failed".to_owned()
        } else {
            text
        },
        developer_message: None,
        can_retry: retry_after.is_some(),
        retry_after,
        additional_prompt_content: None,
    })
}

/// The value of a result without `structuredContent`.
fn value_of(content: Vec<Value>) -> Value {
    if content.is_empty() {
        return Value::Null;
    }
    if content.iter().all(|block| text_in(block).is_some()) {
        return text_of(&content).into();
    }
    content.into()
}

/// The text of all blocks that have one, in lines.
fn text_of(content: &[Value]) -> String {
    let texts = content.iter().filter_map(text_in);
    texts.collect::<Vec<_>>().join("\n")
}

fn text_in(block: &Value) -> Option<&str> {
    (block["type"] == "text").then(|| block["text"].as_str())?
}

/// 2026-07-28, Multi Round-Trip Requests. If there are only URLs to open, they are challenges.
fn input_required(result: &mut JsonObject) -> Result<CallOutcome, ClientError> {
    let state = match result.swap_remove("requestState") {
        None | Some(Value::Null) => None,
        Some(Value::String(state)) => Some(Secret::from(state)),
        Some(_) => return Err(unreadable("its requestState is not a string")),
    };
    let requests = match result.swap_remove("inputRequests") {
        None | Some(Value::Null) => JsonObject::new(),
        Some(Value::Object(requests)) => requests,
        Some(_) => return Err(unreadable("its inputRequests are not an object")),
    };
    let requests: Vec<_> = requests.into_iter().map(input_request).collect();
    if requests.is_empty() && state.is_none() {
        return Err(unreadable("it requires input but does not say which"));
    }
    let required = InputRequired {
        requests,
        request_state: state,
    };
    Ok(challenges_in(&required).unwrap_or(CallOutcome::InputRequired(required)))
}

fn input_request((key, mut request): (String, Value)) -> InputRequest {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let method = text(&request["method"]);
    let mut params = request
        .get_mut("params")
        .map(Value::take)
        .unwrap_or_default();
    match (method.as_str(), params["mode"].as_str()) {
        ("elicitation/create", Some("url")) => InputRequest::Url {
            key,
            message: text(&params["message"]),
            url: text(&params["url"]),
        },
        ("elicitation/create", None | Some("form")) => InputRequest::Form {
            key,
            message: text(&params["message"]),
            schema: params
                .get_mut("requestedSchema")
                .map(Value::take)
                .unwrap_or_default(),
        },
        _ => InputRequest::Other { key, method },
    }
}

/// The missing permissions, if each request is a URL.
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
    use serde_json::json;

    use super::*;
    use crate::client::mcp::{message::answer_in, tool::page_in};

    fn reply_to(result: Value) -> Result<CallReply, ClientError> {
        let Value::Object(result) = result else {
            panic!("{result}")
        };
        CallReply::of_answer(RpcAnswer::Result(result), "id-1")
    }

    fn value(result: Value) -> Value {
        reply_to(result).unwrap().outcome.value().unwrap()
    }

    #[test]
    fn the_value_is_the_structured_content_or_else_the_text() {
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
        let reply = reply_to(failed).unwrap();
        assert!(reply.is_replay && reply.call_id == "id-2");
        let wait = Some(Duration::from_millis(250));
        assert_eq!(reply.retry_advice(), RetryAdvice::Again(wait));
        assert_eq!(reply.outcome.message(), "No.");
        let reply = reply_to(json!({"isError": true, "content": []})).unwrap();
        assert_eq!(reply.retry_advice(), RetryAdvice::Done);
        assert_eq!(reply.outcome.message(), "The tool failed");
    }

    #[test]
    fn requests_for_input_are_data() {
        let url = json!({"method": "elicitation/create",
            "params": {"mode": "url", "message": "Open it.", "url": "https://a.example"}});
        let form = json!({"method": "elicitation/create",
            "params": {"message": "Who?", "requestedSchema": {"type": "object"}}});
        let required = |requests: Value| {
            let result = json!({"resultType": "input_required", "inputRequests": requests,
                "requestState": "marked-state"});
            reply_to(result).unwrap().outcome
        };
        let outcome = required(json!({"google": url}));
        let CallOutcome::MissingRequirements(missing) = &outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(missing.message, "Open it.");
        assert_eq!(missing.challenges[0].id, "google");
        assert_eq!(missing.challenges[0].url, "https://a.example");
        assert!(!format!("{outcome:?}").contains("marked"));
        let outcome = required(json!({"name": form, "google": url, "odd": 5}));
        let CallOutcome::InputRequired(input) = &outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(
            input.request_state.as_ref().unwrap().expose(),
            "marked-state"
        );
        assert!(
            matches!(&input.requests[0], InputRequest::Form { key, message, schema }
            if key == "name" && message == "Who?" && schema["type"] == "object")
        );
        assert!(matches!(&input.requests[1], InputRequest::Url { .. }));
        assert!(matches!(&input.requests[2], InputRequest::Other { .. }));
        assert!(outcome.message().contains("Who? Open it."));
        assert!(matches!(required(json!({})), CallOutcome::InputRequired(_)));
    }

    #[test]
    fn a_malformed_result_is_an_error_and_not_a_panic() {
        for wrong in [
            json!({}),
            json!({"content": "text"}),
            json!({"content": [], "isError": "no"}),
            json!({"resultType": "task", "content": []}),
            json!({"resultType": "input_required"}),
            json!({"resultType": "input_required", "inputRequests": []}),
            json!({"resultType": "input_required", "requestState": 5}),
        ] {
            let result = reply_to(wrong.clone());
            assert!(matches!(result, Err(ClientError::Unreadable(_))), "{wrong}");
        }
        for odd in [json!(5), json!([]), json!("text"), json!({"method": []})] {
            let request = json!({"a": odd, "b": {"method": "elicitation/create", "params": odd}});
            let result = json!({"resultType": "input_required", "inputRequests": request});
            assert!(reply_to(result).is_ok(), "{odd}");
            let result = json!({"content": [odd, {"type": odd}], "_meta": odd, "isError": true});
            assert!(reply_to(result).is_ok(), "{odd}");
        }
    }

    /// Whatever arrives, reading it ends with a value or an error.
    #[test]
    fn mangled_messages_are_no_panic() {
        let result = json!({"resultType": "input_required", "requestState": "s", "content": [],
            "inputRequests": {"a": {"method": "elicitation/create", "params": {"mode": "url"}}},
            "structuredContent": {"result": 1}, "isError": true, "_meta": {"lambda-tools/replay": true},
            "tools": [{"name": "a", "inputSchema": {"properties": {"b": {"x-mcp-header": "B"}}},
                "annotations": {"readOnlyHint": true}}], "nextCursor": "c"});
        let message = json!({"jsonrpc": "2.0", "id": 7, "result": result}).to_string();
        for at in 0..message.len() {
            for byte in *b"0\"{}[]:,nx" {
                let mut mangled = message.clone().into_bytes();
                mangled[at] = byte;
                let Ok(mangled) = serde_json::from_slice::<Value>(&mangled) else {
                    continue;
                };
                if let Ok(RpcAnswer::Result(result)) = answer_in(mangled, 7) {
                    let _ = page_in(result.clone(), true);
                    let _ = CallReply::of_answer(RpcAnswer::Result(result), "id-1");
                }
            }
        }
    }
}
