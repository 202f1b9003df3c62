//! Resources and prompts: the decoding of requests for them, and the encoding of what their functions
//! return.
//!
//! Reference: 2026-07-28 and 2025-11-25, Resources, Prompts, Completion.

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    McpCodec,
    format::{McpFormat, OutputKind},
    params::{arguments, elicit, list, taken},
    progress::ProgressStream,
    response::{self, Meta, block_of, encode_error, resource_of},
    transport::ErrorResponse,
};
use crate::{
    call::{Call, Outcome},
    protocol::{
        codec::{EncodedRequest, Operation},
        jsonrpc::{INTERNAL_ERROR, RpcError},
    },
    tool::{
        content::EncodedContent,
        output::Output,
        resource::{choices_in, messages_in},
        toolkit::ToolEntry,
    },
};

/// Decodes the params of a request.
pub(super) fn decode(
    request: &EncodedRequest<'_>,
    codec: &McpCodec,
    format: &mut McpFormat,
    method: &str,
    mut params: Value,
    mut meta: Value,
) -> Result<Operation, ErrorResponse> {
    let toolkit = &request.app.engine.toolkit;
    let (entry, input) = match method {
        "resources/read" => {
            let uri = taken(&mut params, "uri");
            format.uri = uri.as_str().unwrap_or_default().into();
            format.output = OutputKind::Resource;
            let found = toolkit.resource(&format.uri);
            found.ok_or_else(|| no_resource(format))?
        }
        "prompts/get" => {
            format.output = OutputKind::Prompt;
            let entry = prompt(request, &params["name"])?;
            (entry, arguments(&mut params)?)
        }
        "completion/complete" => {
            let body = completion(request, format, &params)?;
            return Ok(Operation::Respond(StatusCode::OK, body));
        }
        _ => {
            format.list = Some(match method {
                "resources/list" => "resources",
                "prompts/list" => "prompts",
                _ => "resourceTemplates",
            });
            return list(request, codec, format, &params);
        }
    };
    let name = entry.id.qualified();
    elicit(request, format, &mut params, &meta, (name, &input))?;
    let mut call = Call::of_newest(entry, None, input);
    call.entry = Some(entry.clone());
    call.client_context.answers = format.elicitation.answers();
    format.progress = ProgressStream::of(request.headers, &mut meta);
    Ok(Operation::Call(call))
}

fn no_resource(format: &McpFormat) -> ErrorResponse {
    ErrorResponse::no_resource(&format.uri, format.is_modern())
}

fn prompt<'a>(request: &EncodedRequest<'a>, name: &Value) -> Result<&'a ToolEntry, ErrorResponse> {
    let mut prompts = request.app.engine.toolkit.prompt_entries();
    let found = prompts.find(|it| name == it.id.name());
    found.ok_or_else(|| ErrorResponse::invalid_params("There is no prompt with this name."))
}

/// Returns the response to `completion/complete`: of the texts that an argument of a prompt allows,
/// those that begin with the given one.
fn completion(
    request: &EncodedRequest<'_>,
    format: &McpFormat,
    params: &Value,
) -> Result<Vec<u8>, ErrorResponse> {
    let (reference, argument) = (&params["ref"], &params["argument"]);
    let mut values = Vec::new();
    match reference["type"].as_str() {
        Some("ref/prompt") => {
            let entry = prompt(request, &reference["name"])?;
            let (name, start) = (argument["name"].as_str(), argument["value"].as_str());
            let properties = &entry.tool.input.value()["properties"];
            values = choices_in(&properties[name.unwrap_or_default()]);
            let may_call = request.app.engine.auth.may_call(request.caller, entry);
            values.retain(|it| may_call && it.starts_with(start.unwrap_or_default()));
            // The specification's limit.
            values.truncate(100);
        }
        Some("ref/resource") => {}
        _ => {
            let detail = "'ref' must name a prompt or a resource.";
            return Err(ErrorResponse::invalid_params(detail));
        }
    }
    let result = json!({"completion": {"values": values, "hasMore": false}});
    Ok(complete(format, result))
}

/// Encodes what the function of a resource or a prompt has returned.
pub(super) fn encode(format: &McpFormat, outcome: &Outcome, output: &Output) -> Vec<u8> {
    let returned = messages_in(output).into_iter().zip(1..);
    if format.output == OutputKind::Prompt {
        let messages = returned.map(|((role, content), number)| {
            json!({"role": role, "content": block_of(format, outcome, number, &content)})
        });
        let messages: Vec<_> = messages.collect();
        if messages.is_empty() {
            let error = RpcError::new(INTERNAL_ERROR, "The prompt has no messages.");
            return encode_error(format, &error);
        }
        return complete(format, json!({"messages": messages}));
    }
    // A link has no contents.
    let has_contents = |it: &EncodedContent| it.text.is_some() || it.data.is_some();
    let contents = returned.map(|((_, it), _)| it).filter(has_contents);
    let uri = |it: &EncodedContent| it.uri.clone().unwrap_or_else(|| format.uri.to_string());
    let contents: Vec<_> = contents.map(|it| resource_of(&uri(&it), &it)).collect();
    if contents.is_empty() {
        return encode_error(format, &no_resource(format).error);
    }
    let mut result = json!({"contents": contents});
    if format.is_modern() {
        // A function may return something else the next time, or for another caller.
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
    }
    complete(format, result)
}

fn complete(format: &McpFormat, mut result: Value) -> Vec<u8> {
    let meta = Meta::of(format);
    if format.is_modern() {
        result["resultType"] = "complete".into();
    }
    if !meta.is_empty() {
        result["_meta"] = json!(meta);
    }
    response::encode(format, &result)
}
