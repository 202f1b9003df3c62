//! Encoding of response bodies: UTF-8 as text, anything else as base64.

use std::sync::Arc;

use axum::body::Bytes;
use base64::{display::Base64Display, prelude::BASE64_STANDARD};
use bytes::{Buf, buf::Chain};
use http::{header::CONTENT_ENCODING, response::Parts};
use serde::{Serialize, Serializer};

use super::ResponseHead;
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

/// A response to an event, as JSON: what comes before a kept list, the list, and the rest.
pub(crate) type EncodedResponse = Chain<Bytes, Chain<Bytes, Bytes>>;

/// JSON that contains no kept list.
pub(crate) fn without_list(json: Vec<u8>) -> EncodedResponse {
    Bytes::from(json).chain(Bytes::new().chain(Bytes::new()))
}

/// The JSON of a response whose body is kept, with its own bytes: a list can have megabytes.
pub(super) fn with_list(
    head: &ResponseHead,
    list: Arc<Representation>,
) -> serde_json::Result<EncodedResponse> {
    let mut before = serde_json::to_vec(head)?;
    // The body becomes the last field of the same object.
    before.pop();
    before.extend_from_slice(b",\"body\":");
    let list = Bytes::from_owner(TextInEvent(list));
    Ok(Bytes::from(before).chain(list.chain(Bytes::from_static(b"}"))))
}

/// A list as the JSON string that it is in an event's response.
struct TextInEvent(Arc<Representation>);

impl AsRef<[u8]> for TextInEvent {
    fn as_ref(&self) -> &[u8] {
        self.0.text_in_event().get().as_bytes()
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
    use std::io::IoSlice;

    use lambda_http::lambda_runtime::Context;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        Failure, Server, Tool, Toolkit, assemble::assemble, clock::FIXED, event::EventResponse,
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
        let (router, _) = assemble(Server::new(Toolkit::new([tool]).unwrap()), FIXED, FIXED);
        let http_api = json!({
            "version": "2.0", "rawPath": "/tools", "rawQueryString": "",
            "requestContext": {"http": {"method": "GET", "path": "/tools"}},
        });
        let rest_api = json!({
            "resource": "/{proxy+}", "httpMethod": "GET", "path": "/tools",
            "requestContext": {"httpMethod": "GET", "path": "/tools"},
        });
        let load_balancer = json!({
            "httpMethod": "GET", "path": "/tools", "requestContext": {"elb": {"targetGroupArn": ""}},
        });
        for (event, accepted, is_base64) in [
            (&http_api, "gzip", true),
            (&http_api, "identity", false),
            (&load_balancer, "gzip", true),
            (&load_balancer, "identity", false),
            (&rest_api, "identity", false),
        ] {
            let mut event = event.clone();
            event["headers"] = json!({"accept-encoding": accepted});
            event["isBase64Encoded"] = json!(false);
            let (event, context) = (event.to_string(), Context::default());
            let invoked = crate::event::invoke(router.clone(), &event, context, false, false);
            let response = invoked.await.unwrap();
            let EventResponse::Http { body, .. } = &response else {
                panic!("a list is a response");
            };
            assert!(matches!(body, EventBody::Kept(_)), "{event}");
            assert_eq!(body.is_base64(), is_base64);
            let json: Value = serde_json::from_str(&json!(body).to_string()).unwrap();
            assert_eq!(json.as_str().unwrap().starts_with('{'), !is_base64);

            let copied = serde_json::to_vec(&response).unwrap();
            let mut kept = response.encode().unwrap();
            assert!(kept.chunks_vectored(&mut [IoSlice::new(&[]); 3]) == 3);
            assert_eq!(kept.copy_to_bytes(kept.remaining()), copied);
        }
    }
}
