//! Encoding of responses.
//!
//! Reference: 2026-07-28 and 2025-11-25, Tools, Tool Result.

use std::{collections::BTreeMap, time::Duration};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{
    format::{McpFormat, OutputKind},
    transport::Revision,
};
use crate::{
    Failure,
    call::Outcome,
    protocol::{
        json_response::to_json,
        jsonrpc::{INTERNAL_ERROR, RpcError, RpcId},
    },
    text::{counted, whole_milliseconds},
    tool::content::EncodedContent,
    wire::{
        jsonrpc,
        mcp::{CALL_ID, MEDIA_TYPE, REPLAY, RETRY_AFTER},
    },
};

#[derive(Serialize)]
struct RpcResponse<'a, T> {
    jsonrpc: &'static str,
    /// Left out if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RpcId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
}

/// The result of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Meta::is_empty")]
    meta: Meta<'a>,
}

/// A block of `content`. Texts, of which nearly every result has one, are not copied.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Block<'a> {
    Text { r#type: &'static str, text: &'a str },
    Other(Value),
}

/// `_meta` of a result.
#[derive(Default)]
pub(super) struct Meta<'a> {
    /// Every modern result names its server.
    server: Option<&'a RawValue>,
    others: Vec<(&'static str, Value)>,
}

impl<'a> Meta<'a> {
    pub(super) fn of(format: &'a McpFormat) -> Self {
        Self {
            server: format.server_info.as_deref(),
            others: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, name: &'static str, value: impl Into<Value>) {
        self.others.push((name, value.into()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.server.is_none() && self.others.is_empty()
    }
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(server) = self.server {
            map.serialize_entry("io.modelcontextprotocol/serverInfo", server)?;
        }
        for (name, value) in &self.others {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Returns the block of `content` for one item of a tool's content.
pub(super) fn block_of<'a>(
    format: &McpFormat,
    outcome: &Outcome,
    number: usize,
    content: &'a EncodedContent,
) -> Block<'a> {
    let media_type = &*content.media_type;
    let kind = media_type.split('/').next().unwrap_or_default();
    let text = content.text.as_deref();
    let data = content.data.as_deref();
    let has_audio = format.revision > Some(Revision::V2024_11_05);
    Block::Other(match (&content.uri, text, data) {
        (None, Some(text), _) if media_type == "text/plain" => return text_block(text),
        (None, Some(text), _) => {
            json!({"type": "text", "text": text, "_meta": {MEDIA_TYPE: media_type}})
        }
        (None, _, Some(data)) if kind.eq_ignore_ascii_case("image") => {
            json!({"type": "image", "data": data, "mimeType": media_type})
        }
        (None, _, Some(data)) if has_audio && kind.eq_ignore_ascii_case("audio") => {
            json!({"type": "audio", "data": data, "mimeType": media_type})
        }
        // Older revisions have no links.
        (Some(uri), None, None) if format.revision < Some(Revision::V2025_06_18) => {
            return text_block(uri);
        }
        (Some(uri), None, None) => {
            let name = uri.rsplit('/').find(|it| !it.is_empty());
            json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": media_type})
        }
        (uri, _, _) => {
            let uri = match uri {
                Some(uri) => uri.clone(),
                None => uri_of(outcome, number),
            };
            json!({"type": "resource", "resource": resource_of(&uri, content)})
        }
    })
}

pub(super) fn resource_of(uri: &str, content: &EncodedContent) -> Value {
    let mut resource = json!({"uri": uri, "mimeType": content.media_type});
    if let Some(text) = &content.text {
        resource["text"] = json!(text);
    }
    if let Some(data) = &content.data {
        resource["blob"] = json!(data);
    }
    resource
}

fn text_block(text: &str) -> Block<'_> {
    let r#type = "text";
    Block::Text { r#type, text }
}

/// Returns the blocks after a text for the model, if there is one.
fn after<'a>(note: Option<&'a str>, mut blocks: Vec<Block<'a>>) -> Vec<Block<'a>> {
    if let Some(note) = note {
        blocks.insert(0, text_block(note));
    }
    blocks
}

/// Returns the URI of a part of this message, and of no other (RFC 2392).
fn uri_of(outcome: &Outcome, number: usize) -> String {
    let call = utf8_percent_encode(&outcome.call_id, NON_ALPHANUMERIC);
    format!("cid:{number}.{call}@lambda-tools")
}

/// Encodes a response with this result.
pub(super) fn encode(format: &McpFormat, result: &impl Serialize) -> Vec<u8> {
    if format.is_bare {
        return to_json(result);
    }
    to_json(&RpcResponse {
        jsonrpc: jsonrpc::VERSION,
        id: format.id.as_deref(),
        result: Some(result),
        error: None,
    })
}

pub(super) fn encode_error(format: &McpFormat, error: &RpcError) -> Vec<u8> {
    to_json(&RpcResponse::<()> {
        jsonrpc: jsonrpc::VERSION,
        id: format.id.as_deref(),
        result: None,
        error: Some(error),
    })
}

pub(super) fn encode_outcome(format: &McpFormat, outcome: &Outcome) -> Vec<u8> {
    let mut meta = Meta::of(format);
    if !outcome.call_id.is_empty() {
        meta.insert(CALL_ID, &*outcome.call_id);
    }
    if outcome.is_replay {
        meta.insert(REPLAY, true);
    }
    let note = outcome.age.map(|age| {
        let ago = counted(age.as_secs(), "second", "seconds");
        format!("The same call was made {ago} ago; this is its result, and nothing was done again.")
    });
    let note = note.as_deref();
    match &outcome.result {
        Ok(output) => {
            let is_content = format.output == OutputKind::Content;
            if let Some(content) = is_content.then(|| output.content()).flatten() {
                let blocks = content.iter().zip(1..);
                let blocks = blocks.map(|(it, number)| block_of(format, outcome, number, it));
                let blocks = after(note, blocks.collect());
                return encode(format, &CallResult::of(format, blocks, meta));
            }
            let structured = if format.output == OutputKind::Other || !output.is_object() {
                to_raw_value(&BTreeMap::from([("result", output)]))
            } else {
                to_raw_value(output)
            };
            let structured = structured.expect("JSON values can be serialized as JSON");
            let text = after(note, vec![text_block(structured.get())]);
            let result = CallResult {
                structured_content: Some(&structured),
                ..CallResult::of(format, text, meta)
            };
            encode(format, &result)
        }
        Err(failure) => {
            let question = failure.parts().question.as_ref();
            if let Some(question) = question.filter(|_| !format.is_bare) {
                let mut result = format.elicitation.question(failure, question);
                result["_meta"] = json!(meta);
                return encode(format, &result);
            }
            if let Some(wait) = failure.parts().retry_after {
                meta.insert(RETRY_AFTER, whole_milliseconds(wait));
            }
            let text = text_of(failure);
            if format.is_read() {
                return encode_error(format, &RpcError::new(INTERNAL_ERROR, text));
            }
            let result = CallResult {
                is_error: true,
                ..CallResult::of(format, after(note, vec![text_block(&text)]), meta)
            };
            encode(format, &result)
        }
    }
}

impl<'a> CallResult<'a> {
    fn of(format: &McpFormat, content: Vec<Block<'a>>, meta: Meta<'a>) -> Self {
        Self {
            result_type: format.is_modern().then_some("complete"),
            content,
            structured_content: None,
            is_error: false,
            meta: Some(meta).filter(|_| !format.is_bare).unwrap_or_default(),
        }
    }

    pub(super) fn error(format: &McpFormat, text: &'a str, meta: Meta<'a>) -> Self {
        Self {
            is_error: true,
            ..Self::of(format, vec![text_block(text)], meta)
        }
    }
}

/// Returns the text of a failure for a model: what went wrong, and what to do next.
fn text_of(failure: &Failure) -> String {
    let parts = failure.parts();
    let mut text = failure.message().to_owned();
    if let Some(prompt) = &parts.additional_prompt_content {
        text = format!("{text}\n{prompt}");
    }
    if parts.can_retry {
        let advice = match parts.retry_after {
            Some(wait) => format!("Try again in {}.", in_words(wait)),
            None => "The same call may succeed later.".to_owned(),
        };
        text = format!("{text}\n{advice}");
    }
    text
}

pub(super) fn in_words(wait: Duration) -> String {
    let seconds = wait.as_millis().div_ceil(1000);
    counted(seconds, "second", "seconds")
}
