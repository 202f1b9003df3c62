//! Content blocks.
//!
//! Reference: 2026-07-28 and 2025-11-25, Tools, Tool Result.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};

use super::{format::McpFormat, revision::Revision};
use crate::{call::Outcome, tool::content::EncodedContent, wire::mcp::MEDIA_TYPE};

/// A block of a result's `content`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum ContentBlock<'a> {
    Text {
        text: &'a str,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Value>,
    },
    Image(Media<'a>),
    Audio(Media<'a>),
    Resource {
        resource: Resource<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Media<'a> {
    data: &'a str,
    mime_type: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resource<'a> {
    uri: String,
    mime_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<&'a str>,
}

impl<'a> ContentBlock<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text { text, meta: None }
    }

    /// Returns the block for one item of a tool's content.
    pub(super) fn of(
        format: &McpFormat,
        outcome: &Outcome,
        number: usize,
        content: &'a EncodedContent,
    ) -> Self {
        let mime_type = &*content.media_type;
        let kind = mime_type.split('/').next().unwrap_or_default();
        let text = content.text.as_deref();
        let data = content.data.as_deref();
        let has_audio = format.revision > Some(Revision::V2024_11_05);
        match (&content.uri, text, data) {
            (None, Some(text), _) => Self::Text {
                text,
                meta: (mime_type != "text/plain").then(|| json!({MEDIA_TYPE: mime_type})),
            },
            (None, _, Some(data)) if kind.eq_ignore_ascii_case("image") => {
                Self::Image(Media { data, mime_type })
            }
            (None, _, Some(data)) if has_audio && kind.eq_ignore_ascii_case("audio") => {
                Self::Audio(Media { data, mime_type })
            }
            (uri, text, data) => Self::Resource {
                resource: Resource {
                    uri: match uri {
                        Some(uri) => uri.clone(),
                        None => uri_of(outcome, number),
                    },
                    mime_type,
                    text,
                    blob: data,
                },
            },
        }
    }
}

/// Returns the URI of a part of this message, and of no other (RFC 2392).
fn uri_of(outcome: &Outcome, number: usize) -> String {
    let call = utf8_percent_encode(&outcome.call_id, NON_ALPHANUMERIC);
    format!("cid:{number}.{call}@lambda-tools")
}
