//! Encoding of response bodies: UTF-8 as text, anything else as base64.

use std::sync::Arc;

use axum::body::Bytes;
use base64::{display::Base64Display, prelude::BASE64_STANDARD};
use http::{header::CONTENT_ENCODING, response::Parts};
use serde::{Serialize, Serializer};

use crate::{
    payload::encoded_size,
    protocol::{content_coding::Coding, representation::Representation},
};

/// The body of an event's response.
pub(crate) enum EventBody {
    Text(String),
    Binary(Vec<u8>),
    /// A list, which is kept in the form that it has in an event.
    Kept(Arc<Representation>),
}

impl EventBody {
    pub(super) fn of(parts: &Parts, body: Bytes) -> Self {
        if let Some(kept) = kept(parts, &body) {
            return Self::Kept(Arc::clone(kept));
        }
        let is_encoded = parts.headers.contains_key(CONTENT_ENCODING);
        match String::from_utf8(body.into()) {
            Ok(text) if !is_encoded => Self::Text(text),
            Ok(text) => Self::Binary(text.into_bytes()),
            Err(error) => Self::Binary(error.into_bytes()),
        }
    }

    pub(super) fn is_base64(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Binary(_) => true,
            Self::Kept(body) => body.coding() == Coding::Gzip,
        }
    }
}

impl Serialize for EventBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Binary(bytes) => {
                serializer.collect_str(&Base64Display::new(bytes, &BASE64_STANDARD))
            }
            Self::Kept(body) => body.text_in_event().serialize(serializer),
        }
    }
}

/// True if the body, as base64 or as text, is within the limit.
pub(super) fn fits(parts: &Parts, body: &Bytes, largest: usize) -> bool {
    if let Some(kept) = kept(parts, body) {
        return kept.fits(largest);
    }
    body.len().div_ceil(3) * 4 <= largest
        || (std::str::from_utf8(body).is_ok() && encoded_size(body) <= largest)
}

/// The representation that the body is, unless the program has replaced the body.
fn kept<'a>(parts: &'a Parts, body: &Bytes) -> Option<&'a Arc<Representation>> {
    let kept = parts.extensions.get::<Arc<Representation>>();
    let is_compressed = parts.headers.contains_key(CONTENT_ENCODING);
    kept.filter(|it| it.is(body) && is_compressed == (it.coding() == Coding::Gzip))
}

#[cfg(test)]
mod tests {
    use lambda_http::lambda_runtime::Context;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        Failure, Server, Tool, Toolkit, assemble::assemble, clock::FIXED, event::EventResponse,
        watchdog::Tasks,
    };

    #[tokio::test]
    async fn the_body_of_a_list_is_the_one_that_is_kept() {
        let nothing = async |_: Value| Ok::<_, Failure>(Value::Null);
        let text = "\"text\" ".repeat(4000);
        let tool = Tool::dynamic(
            "T.T@1.0.0",
            text,
            json!({"type": "object"}),
            Value::Null,
            nothing,
        );
        let (router, _) = assemble(
            Server::new(Toolkit::new([tool]).unwrap()),
            FIXED,
            FIXED,
            Tasks::default(),
        );
        for (accepted, is_base64) in [("gzip", true), ("identity", false)] {
            let event = json!({
                "version": "2.0", "rawPath": "/tools", "rawQueryString": "",
                "headers": {"accept-encoding": accepted},
                "requestContext": {"http": {"method": "GET", "path": "/tools"}},
                "isBase64Encoded": false,
            });
            let (event, context) = (event.to_string(), Context::default());
            let invoked = crate::event::invoke(router.clone(), &event, context, false, false);
            let Ok(EventResponse::Http { body, .. }) = invoked.await else {
                panic!("a list is a response");
            };
            assert!(matches!(body, EventBody::Kept(_)), "{accepted}");
            assert_eq!(body.is_base64(), is_base64);
            let json: Value = serde_json::from_str(&json!(body).to_string()).unwrap();
            assert_eq!(json.as_str().unwrap().starts_with('{'), !is_base64);
        }
    }
}
