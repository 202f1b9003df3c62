//! Binary data and text with a media type, as a tool's output.
//!
//! An agent should see an image, not its base64. MCP has content blocks for that; in the other
//! protocols a value is JSON, so there content is an object.

use std::{any::TypeId, borrow::Cow};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mime::Mime;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer, ser::Error as _};

use super::output::Output;

/// Data with a media type: an image, audio, a document, or text.
///
/// A tool returns exactly `Content` or `Vec<Content>`; inside of another type, content is an
/// ordinary value:
///
/// ```
/// # use lambda_tools_core as lambda_tools;
/// use lambda_tools::{Content, Failure};
///
/// # /// Draws.
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Chart {}
/// # fn draw(_: Chart) -> Vec<u8> { Vec::new() }
/// async fn chart(input: Chart) -> Result<Vec<Content>, Failure> {
///     let png: Vec<u8> = draw(input);
///     Ok(vec![Content::text("Revenue by month"), Content::bytes("image/png", png)])
/// }
/// # let tool = lambda_tools::Tool::new("Charts.Draw@1.0.0", chart);
/// # lambda_tools::Toolkit::new([tool]).unwrap();
/// ```
///
/// In MCP, text is a `text` block, and bytes of a media type `image/*` or `audio/*` are an `image`
/// or an `audio` block. A [link](Self::link) is a `resource_link`. Content with a [URI](Self::uri), and bytes of any other media type, are an
/// embedded resource. Such a tool has no output schema and no `structuredContent` in MCP.
///
/// In the other protocols, content is `{"media_type": "text/plain", "text": "…"}`, or
/// `{"media_type": "image/png", "data": "…"}` with the bytes in base64, and `uri` if there is one.
/// A limit on the size of a response counts the base64, which is a third longer than the bytes. So
/// do the limits of the store of calls: a repeated call gets no second copy of
/// content that is too large to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Content(pub(super) EncodedContent);

/// The JSON of content.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EncodedContent {
    /// The media type, such as `image/png`.
    pub media_type: Cow<'static, str>,
    /// The text, if it is not bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes in base64: RFC 4648, section 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The URI that identifies the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
}

impl Content {
    /// Creates a text, of the media type `text/plain`.
    pub fn text(text: impl Into<String>) -> Self {
        Self(EncodedContent {
            media_type: "text/plain".into(),
            text: Some(text.into()),
            data: None,
            uri: None,
        })
    }

    /// Creates bytes of a media type, such as `image/png`. A call whose tool returns an invalid
    /// media type fails.
    pub fn bytes(media_type: impl Into<Cow<'static, str>>, bytes: impl Into<Vec<u8>>) -> Self {
        Self(EncodedContent {
            media_type: media_type.into(),
            text: None,
            data: Some(STANDARD.encode(bytes.into())),
            uri: None,
        })
    }

    /// Creates a link to a resource, which a client of MCP may read: one of this server, or one at an
    /// `https` URL. A call whose tool returns an invalid URI or media type fails.
    pub fn link(uri: impl Into<String>, media_type: impl Into<Cow<'static, str>>) -> Self {
        Self(EncodedContent {
            media_type: media_type.into(),
            text: None,
            data: None,
            uri: Some(uri.into()),
        })
    }

    /// Sets the media type of text, such as `text/markdown`.
    pub fn media_type(mut self, media_type: impl Into<Cow<'static, str>>) -> Self {
        self.0.media_type = media_type.into();
        self
    }

    /// Sets the URI that identifies the content, such as `file:///report.pdf`.
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.0.uri = Some(uri.into());
        self
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let EncodedContent {
            media_type, uri, ..
        } = &self.0;
        // `Mime` takes an empty subtype.
        let parsed = media_type.parse::<Mime>();
        let is_valid = parsed.is_ok_and(|it| it.subtype() != "");
        if !is_valid {
            let detail = format!("{media_type:?} is not a media type");
            return Err(S::Error::custom(detail));
        }
        if let Some(uri) = uri.as_deref().filter(|uri| !is_uri(uri)) {
            return Err(S::Error::custom(format!("{uri:?} is not a URI")));
        }
        self.0.serialize(serializer)
    }
}

impl JsonSchema for Content {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Content".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Data with a media type.",
            "properties": {
                "media_type": {"type": "string", "description": "Such as image/png."},
                "text": {"type": "string", "description": "The text, if the content is text."},
                "data": {
                    "type": "string",
                    "description": "The bytes in base64, if the content is not text.",
                    "contentEncoding": "base64",
                },
                "uri": {"type": "string", "description": "Identifies the content."},
            },
            "required": ["media_type"],
            "additionalProperties": false,
        })
    }
}

/// Returns true for a scheme and something after it (RFC 3986, 3), in the characters that a URI may
/// have.
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let is_scheme_char = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let is_excluded = |byte: u8| byte <= b' ' || byte >= 0x7f || b"\"<>\\^`{|}".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(is_scheme_char)
        && !rest.is_empty()
        && !rest.bytes().any(is_excluded)
}

/// Returns true for the output types that are sent as content.
pub(crate) fn is_content<T: 'static>() -> bool {
    let types = [TypeId::of::<Content>(), TypeId::of::<Vec<Content>>()];
    types.contains(&TypeId::of::<T>())
}

impl Output {
    /// Returns the output of a tool that returns content; `None` if it is anything else, such as
    /// the recorded output of another version of the tool.
    pub fn content(&self) -> Option<Vec<EncodedContent>> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum OneOrMany {
            One(EncodedContent),
            Many(Vec<EncodedContent>),
        }
        let content = match self {
            Self::Value(value) => OneOrMany::deserialize(value).ok()?,
            Self::Json(json) => serde_json::from_str(json.get()).ok()?,
        };
        Some(match content {
            OneOrMany::One(content) => vec![content],
            OneOrMany::Many(list) => list,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::output::to_value;

    #[test]
    fn content_is_an_object_with_text_or_base64() {
        let text = Content::text("# Total").media_type("text/markdown");
        let expected = json!({"media_type": "text/markdown", "text": "# Total"});
        assert_eq!(to_value(&text).unwrap(), expected);
        let bytes = Content::bytes("application/pdf", [0, 255]).uri("file:///report.pdf");
        let expected = json!({"media_type": "application/pdf", "data": "AP8=",
            "uri": "file:///report.pdf"});
        assert_eq!(to_value(&bytes).unwrap(), expected);
    }

    #[test]
    fn a_media_type_has_a_type_and_a_subtype() {
        for valid in ["image/png", "text/html; charset=utf-8", "a/b+c"] {
            assert!(to_value(&Content::bytes(valid, [])).is_ok(), "{valid}");
        }
        for invalid in ",png,image/,/png,image/png/x,image /png, image/png,a/b; \n".split(',') {
            assert!(to_value(&Content::bytes(invalid, [])).is_err(), "{invalid}");
        }
    }

    #[test]
    fn a_uri_has_a_scheme() {
        for valid in ["file:///report.pdf", "test://a?b#c", "urn:x:1"] {
            assert!(is_uri(valid), "{valid}");
        }
        for invalid in ["", "report.pdf", ":x", "1a:x", "a:", "a:b c", "a:é"] {
            assert!(!is_uri(invalid), "{invalid}");
            assert!(to_value(&Content::text("").uri(invalid)).is_err());
        }
    }

    #[test]
    fn recorded_content_is_read_as_it_was_sent() {
        let list = vec![Content::text("\"é\""), Content::bytes("audio/wav", [1])];
        let value = to_value(&list).unwrap();
        let json = serde_json::value::to_raw_value(&value).unwrap();
        for output in [Output::Value(value), Output::Json(json)] {
            let content = output.content().unwrap();
            assert_eq!(content[0].text.as_deref(), Some("\"é\""));
            assert_eq!(content[1].data.as_deref(), Some("AQ=="));
        }
        for other in [json!({"media_type": "a/b", "other": 1}), json!(7)] {
            assert!(Output::Value(other).content().is_none());
        }
    }
}
