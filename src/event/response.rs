//! The responses to HTTP requests in events, whole in the format of their source, or in parts.
//!
//! AWS Lambda Developer Guide, "Response streaming for Lambda functions"; "Using the Lambda runtime
//! API for custom runtimes".

use std::{borrow::Cow, collections::BTreeMap};

use axum::body::{Body, Bytes};
use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{StreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONTENT_ENCODING, SET_COOKIE},
    response::Parts,
};
use http_body_util::BodyExt;
use serde_json::json;

use crate::{arrival::LARGEST_PAYLOAD, protocol::problem};

/// The source of an event, which determines the format of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventSource {
    Rest,
    Http,
    Alb { multi_value_headers: bool },
}

impl EventSource {
    /// Returns the maximum size of a response in bytes: Lambda's quota, or the load balancer's own.
    pub(super) fn largest_response(self) -> usize {
        match self {
            Self::Rest | Self::Http => LARGEST_PAYLOAD,
            Self::Alb { .. } => 1_000_000,
        }
    }
}

/// A response whose body may still have to come.
pub(crate) struct StreamedResponse {
    pub(crate) source: EventSource,
    pub(crate) parts: Parts,
    pub(crate) body: Body,
}

/// The separator between the prelude and the body.
const SEPARATOR: [u8; 8] = [0; 8];

impl StreamedResponse {
    /// Returns the prelude and its separator, as the runtime API expects them before the body. The
    /// prelude has one value for each header, because it has no place for more.
    pub(crate) fn prelude(&self) -> Bytes {
        let headers = &self.parts.headers;
        let names = headers.keys().map(HeaderName::as_str);
        let names = names.filter(|name| SET_COOKIE != *name);
        let joined = names.map(|name| (name, values_of(headers, name).join(", ")));
        let prelude = json!({
            "statusCode": self.parts.status.as_u16(),
            "headers": joined.collect::<BTreeMap<_, _>>(),
            "cookies": values_of(headers, SET_COOKIE.as_str()),
        });
        [prelude.to_string().as_bytes(), &SEPARATOR].concat().into()
    }

    /// Sets the work after the last part, which the end of the body waits for.
    pub(crate) fn flush_after(&mut self, flush: impl Future<Output = ()> + Send + 'static) {
        let parts = std::mem::take(&mut self.body).into_data_stream();
        let end = stream::once(flush).filter_map(async |()| None);
        self.body = Body::from_stream(parts.chain(end));
    }

    /// Waits for the whole body, and returns the response as JSON.
    pub(crate) async fn whole(self) -> Bytes {
        let source = self.source;
        let detail = match collected(self.body).await {
            Ok(body) => {
                let response = encoded(source, &self.parts, body);
                if response.len() <= source.largest_response() {
                    return response;
                }
                "The response is too large to send.".to_owned()
            }
            Err(error) => format!("The response ended early: {error}"),
        };
        let (parts, body) = problem::internal_error(&detail).into_parts();
        encoded(source, &parts, collected(body).await.unwrap_or_default())
    }
}

pub(super) async fn collected(body: Body) -> Result<Bytes, axum::Error> {
    Ok(body.collect().await?.to_bytes())
}

/// Encodes a response in the format of the event's source: a body of UTF-8 as text, any other as
/// base64.
fn encoded(source: EventSource, parts: &Parts, body: Bytes) -> Bytes {
    let headers = &parts.headers;
    let names = || headers.keys().map(HeaderName::as_str);
    let first = || names().map(|name| (name, lossy(&headers[name])));
    let all = || names().map(|name| (name, values_of(headers, name)));
    let is_base64 = headers.contains_key(CONTENT_ENCODING) || str::from_utf8(&body).is_err();
    let body = if is_base64 {
        BASE64_STANDARD.encode(body)
    } else {
        String::from_utf8_lossy(&body).into_owned()
    };
    let mut response = json!({
        "statusCode": parts.status.as_u16(),
        "headers": {},
        "multiValueHeaders": {},
        "isBase64Encoded": is_base64,
    });
    match source {
        // The gateway would send headers in both maps twice.
        EventSource::Rest => response["multiValueHeaders"] = all().collect(),
        EventSource::Http => {
            response["headers"] = first().filter(|(name, _)| SET_COOKIE != *name).collect();
            response["cookies"] = json!(values_of(headers, SET_COOKIE.as_str()));
        }
        EventSource::Alb {
            multi_value_headers,
        } => {
            response["statusDescription"] = parts.status.to_string().into();
            if multi_value_headers {
                response["multiValueHeaders"] = all().collect();
            } else {
                response["headers"] = first().collect();
            }
        }
    }
    response["body"] = body.into();
    let json = serde_json::to_vec(&response);
    json.expect("a value is JSON").into()
}

/// Returns the values of a header as texts.
fn values_of<'a>(headers: &'a HeaderMap, name: &str) -> Vec<Cow<'a, str>> {
    headers.get_all(name).iter().map(lossy).collect()
}

fn lossy(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Response, StatusCode};
    use serde_json::Value;

    use super::*;

    fn response(headers: &[(&'static str, &'static [u8])]) -> StreamedResponse {
        let (mut parts, ()) = Response::new(()).into_parts();
        for (name, value) in headers {
            let value = HeaderValue::from_bytes(value).unwrap();
            parts.headers.append(*name, value);
        }
        StreamedResponse {
            source: EventSource::Http,
            parts,
            body: Body::empty(),
        }
    }

    fn prelude_of(response: &StreamedResponse) -> Value {
        let prelude = response.prelude();
        let json = prelude.strip_suffix(&SEPARATOR).unwrap();
        assert!(!json.contains(&0), "only the separator has eight NUL bytes");
        serde_json::from_slice(json).unwrap()
    }

    #[test]
    fn the_prelude_has_one_value_for_each_header() {
        let mut response = response(&[
            ("set-cookie", b"a=1; Path=/"),
            ("vary", b"origin"),
            ("x-text", b"caf\xc3\xa9"),
            ("set-cookie", b"b=2"),
            ("vary", b"accept"),
        ]);
        response.parts.status = StatusCode::IM_A_TEAPOT;
        let expected = json!({
            "statusCode": 418,
            "headers": {"vary": "origin, accept", "x-text": "café"},
            "cookies": ["a=1; Path=/", "b=2"],
        });
        assert_eq!(prelude_of(&response), expected);
        let nothing = json!({"statusCode": 200, "headers": {}, "cookies": []});
        assert_eq!(prelude_of(&self::response(&[])), nothing);
    }

    #[tokio::test]
    async fn the_end_of_the_body_waits_for_the_work_after_it() {
        let (done, work) = tokio::sync::oneshot::channel::<()>();
        let mut response = response(&[]);
        response.body = Body::from_stream(stream::iter([Ok::<_, Infallible>("last")]));
        response.flush_after(async { work.await.unwrap() });
        let mut parts = response.body.into_data_stream();
        assert_eq!(parts.next().await.unwrap().unwrap(), "last");
        let mut end = std::pin::pin!(parts.next());
        assert!(futures_util::poll!(&mut end).is_pending());
        done.send(()).unwrap();
        assert!(end.await.is_none());
    }
}
