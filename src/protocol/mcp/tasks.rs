//! Tasks: calls whose outcome the client asks for later.
//!
//! Reference: the extension `io.modelcontextprotocol/tasks`.

use std::sync::Arc;

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    format::{McpFormat, OutputKind},
    response::{self, Meta},
    transport::{CAPABILITIES, ErrorResponse, MISSING_CAPABILITY, TASKS, supports_tasks},
};
use crate::{
    Failure,
    arrival::{encoded_size, fits},
    call::Outcome,
    clock::timestamp,
    idempotency::deduplication::task::{Task, TaskId, TaskState},
    protocol::{
        codec::{EncodedRequest, Operation, TaskRequest},
        jsonrpc::{INTERNAL_ERROR, RpcError},
    },
    text::whole_milliseconds,
};

/// A task that has completed.
#[derive(Serialize)]
struct CompletedTask {
    #[serde(flatten)]
    task: Value,
    /// The result as it was encoded: in a [`Value`], numbers could change.
    result: Box<RawValue>,
}

/// Returns the error for a client that does not support tasks.
pub(super) fn unsupported() -> ErrorResponse {
    let detail = "The client lacks a capability that this requires.";
    let required = json!({"extensions": {TASKS: {}}});
    ErrorResponse::bad_request(MISSING_CAPABILITY, detail)
        .data(json!({"requiredCapabilities": required}))
}

/// Returns the response to `tools/call` whose call has become a task.
pub(super) fn created(format: &McpFormat, task: &Task) -> Vec<u8> {
    let mut task = of(format, task, "working");
    task["resultType"] = "task".into();
    response::encode(format, &task)
}

/// Decodes `tasks/get`, `tasks/update` and `tasks/cancel`. Answers of users to tasks are not needed:
/// a tool asks before its call becomes a task.
pub(super) fn decode(
    request: &EncodedRequest<'_>,
    format: &McpFormat,
    method: &str,
    params: &Value,
    meta: &Value,
) -> Result<Operation, ErrorResponse> {
    if !supports_tasks(&meta[CAPABILITIES]) {
        return Err(unsupported());
    }
    let unknown = || {
        let detail = "'taskId' is not the id of a task of this caller.";
        ErrorResponse::invalid_params(detail)
    };
    let id = params["taskId"].as_str().and_then(TaskId::parse);
    let id = id.ok_or_else(unknown)?;
    let engine = Arc::clone(&request.app.engine);
    let (name, shows, cancels) = match method {
        "tasks/get" => ("tasks/get", true, false),
        "tasks/cancel" => ("tasks/cancel", false, true),
        _ => ("tasks/update", false, false),
    };
    let mut format = McpFormat {
        id: format.id.clone(),
        revision: format.revision,
        server_info: format.server_info.clone(),
        ..McpFormat::default()
    };
    let reply = move |found, largest| {
        let error = match found {
            Ok(Some(task)) => {
                let entry = engine.tool_of(&task);
                format.output = entry.map(|it| OutputKind::of(&it.tool)).unwrap_or_default();
                let body = if shows {
                    current(&format, task, largest)
                } else {
                    let meta = Meta::of(&format);
                    response::encode(&format, &json!({"resultType": "complete", "_meta": meta}))
                };
                return (StatusCode::OK, body);
            }
            Ok(None) => unknown(),
            Err(_) => {
                let detail = "The task cannot be read at the moment; ask again.";
                ErrorResponse::new(StatusCode::OK, INTERNAL_ERROR, detail)
            }
        };
        (error.status, response::encode_error(&format, &error.error))
    };
    Ok(Operation::Task(TaskRequest {
        name,
        id,
        cancels,
        reply: Box::new(reply),
    }))
}

/// Returns the response to `tasks/get`. An output that is too large to send becomes a failure.
fn current(format: &McpFormat, mut task: Task, largest: usize) -> Vec<u8> {
    let state = std::mem::replace(&mut task.state, TaskState::Working);
    let of = |status| of(format, &task, status);
    let ended = match state {
        TaskState::Working => return response::encode(format, &of("working")),
        TaskState::Cancelled => return response::encode(format, &of("cancelled")),
        TaskState::Lost(failure) => {
            let mut task = of("failed");
            task["error"] = json!(RpcError::new(INTERNAL_ERROR, message_of(&failure)));
            return response::encode(format, &task);
        }
        TaskState::Ended(ended) => ended,
    };
    let mut outcome = Outcome::of(task.id.to_string(), ended.duration, ended.result);
    let task = of("completed");
    let encode = |outcome: &Outcome| {
        let (task, result) = (task.clone(), result_of(format, outcome));
        response::encode(format, &CompletedTask { task, result })
    };
    let body = encode(&outcome);
    if fits(&body, largest) {
        return body;
    }
    outcome.replace_too_large(encoded_size(&body), largest);
    encode(&outcome)
}

fn message_of(failure: &Failure) -> String {
    match &failure.parts().additional_prompt_content {
        Some(prompt) => format!("{}. {prompt}", failure.message()),
        None => format!("{}.", failure.message()),
    }
}

/// Returns the result that `tools/call` would have had.
fn result_of(format: &McpFormat, outcome: &Outcome) -> Box<RawValue> {
    let format = McpFormat {
        revision: format.revision,
        server_info: format.server_info.clone(),
        output: format.output,
        is_bare: true,
        ..McpFormat::default()
    };
    let body = response::encode_outcome(&format, outcome);
    let body = String::from_utf8(body).expect("JSON is UTF-8");
    RawValue::from_string(body).expect("it has just been encoded")
}

fn of(format: &McpFormat, task: &Task, status: &str) -> Value {
    let mut value = json!({
        "resultType": "complete",
        "taskId": task.id.to_string(),
        "status": status,
        "createdAt": timestamp(task.created_at),
        "lastUpdatedAt": timestamp(task.updated_at),
        "ttlMs": whole_milliseconds(task.ttl),
        "pollIntervalMs": whole_milliseconds(task.poll_after),
        "_meta": Meta::of(format),
    });
    if let Some(message) = &task.message {
        value["statusMessage"] = json!(message);
    }
    value
}
