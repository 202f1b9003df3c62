//! Content blocks.
//!
//! Reference: 2026-07-28 and 2025-11-25, Tools, Tool Result.

use serde::Serialize;
use serde_json::{Value, json};

use crate::tool::content::EncodedContent;

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

    /// The block for one item of a tool's content, at this position.
    pub(super) fn of(position: usize, content: &'a EncodedContent<'a>) -> Self {
        let mime_type = &*content.media_type;
        let kind = mime_type.split('/').next().unwrap_or_default();
        match (&content.uri, &content.text, &content.data) {
            (None, Some(text), _) => Self::Text {
                text,
                meta: (mime_type != "text/plain")
                    .then(|| json!({"lambda-tools/media-type": mime_type})),
            },
            (None, _, Some(data)) if kind.eq_ignore_ascii_case("image") => {
                Self::Image(Media { data, mime_type })
            }
            (None, _, Some(data)) if kind.eq_ignore_ascii_case("audio") => {
                Self::Audio(Media { data, mime_type })
            }
            (uri, text, data) => Self::Resource {
                resource: Resource {
                    // RFC 2392: a part of the same message.
                    uri: uri
                        .as_deref()
                        .map_or_else(|| format!("cid:{}@lambda-tools", position + 1), Into::into),
                    mime_type,
                    text: text.as_deref(),
                    blob: data.as_deref(),
                },
            },
        }
    }
}
