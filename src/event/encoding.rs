//! Encoding of response bodies: UTF-8 as text, anything else as base64.

use axum::body::Bytes;
use base64::{display::Base64Display, prelude::BASE64_STANDARD};
use http::{header::CONTENT_ENCODING, response::Parts};
use serde::{Serialize, Serializer};

use crate::payload::fits;

/// The body of an event's response.
pub(crate) enum EventBody {
    /// UTF-8.
    Text(Bytes),
    Binary(Bytes),
}

impl EventBody {
    pub(super) fn of(parts: &Parts, body: Bytes) -> Self {
        let is_encoded = parts.headers.contains_key(CONTENT_ENCODING);
        if is_encoded || str::from_utf8(&body).is_err() {
            Self::Binary(body)
        } else {
            Self::Text(body)
        }
    }

    pub(super) fn is_base64(&self) -> bool {
        matches!(self, Self::Binary(_))
    }

    /// Returns true if the body has at most `largest` bytes in the event's response.
    pub(super) fn fits(&self, largest: usize) -> bool {
        match self {
            Self::Text(body) => fits(body, largest),
            Self::Binary(body) => body.len().div_ceil(3) * 4 <= largest,
        }
    }
}

impl Serialize for EventBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => {
                serializer.serialize_str(str::from_utf8(text).expect("it was checked"))
            }
            Self::Binary(bytes) => {
                serializer.collect_str(&Base64Display::new(bytes, &BASE64_STANDARD))
            }
        }
    }
}
