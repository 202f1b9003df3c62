//! The responses to HTTP requests in events, whole in the format of their source, or in parts.
//!
//! AWS Lambda Developer Guide, "Response streaming for Lambda functions"; "Using the Lambda runtime
//! API for custom runtimes".

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{StreamExt, stream};
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, SET_COOKIE},
    response::Parts,
};
use http_body_util::BodyExt;
use lambda_http::{
    aws_lambda_events::{
        alb::AlbTargetGroupResponse,
        apigw::{ApiGatewayProxyResponse, ApiGatewayV2httpResponse},
    },
    lambda_runtime::Diagnostic,
};
use serde::Serialize;
use serde_json::json;

use super::diagnostic;
use crate::{
    arrival::{LARGEST_PAYLOAD, fits},
    protocol::problem,
};

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
        let values = |name| {
            let values = self.parts.headers.get_all(name).iter();
            let values = values.map(|it| String::from_utf8_lossy(it.as_bytes()));
            values.collect::<Vec<_>>()
        };
        let names = self.parts.headers.keys().filter(|it| **it != SET_COOKIE);
        let headers = names.map(|name| (name.as_str(), values(name).join(", ")));
        let prelude = json!({
            "statusCode": self.parts.status.as_u16(),
            "headers": headers.collect::<BTreeMap<_, _>>(),
            "cookies": values(&SET_COOKIE),
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
    pub(crate) async fn whole(self) -> Result<Bytes, Diagnostic> {
        let source = self.source;
        let detail = match collected(self.body).await {
            Ok(body) => {
                let body = EventBody::of(&self.parts.headers, body);
                if fits(body.body.as_bytes(), source.largest_response()) {
                    return encoded(source, self.parts, body);
                }
                "The response is too large to send.".to_owned()
            }
            Err(error) => format!("The response ended early: {error}"),
        };
        let (parts, body) = problem::internal_error(&detail).into_parts();
        let body = collected(body).await.unwrap_or_default();
        let body = EventBody::of(&parts.headers, body);
        encoded(source, parts, body)
    }
}

pub(super) async fn collected(body: Body) -> Result<Bytes, axum::Error> {
    Ok(body.collect().await?.to_bytes())
}

/// The body of a response: UTF-8 as text, anything else as base64.
struct EventBody {
    body: String,
    is_base64: bool,
}

impl EventBody {
    fn of(headers: &HeaderMap, body: Bytes) -> Self {
        let is_base64 = headers.contains_key(CONTENT_ENCODING) || str::from_utf8(&body).is_err();
        let body = if is_base64 {
            BASE64_STANDARD.encode(body)
        } else {
            String::from_utf8_lossy(&body).into_owned()
        };
        Self { body, is_base64 }
    }
}

/// Encodes a response in the format of the event's source.
fn encoded(source: EventSource, parts: Parts, body: EventBody) -> Result<Bytes, Diagnostic> {
    let EventBody { body, is_base64 } = body;
    let status_code = parts.status.as_u16().into();
    match source {
        EventSource::Rest => {
            let mut head = ApiGatewayProxyResponse::default();
            head.status_code = status_code;
            head.is_base64_encoded = is_base64;
            // The gateway would send headers in both maps twice.
            head.multi_value_headers = parts.headers;
            with_body(head, body)
        }
        EventSource::Http => {
            let mut head = ApiGatewayV2httpResponse::default();
            head.status_code = status_code;
            head.is_base64_encoded = is_base64;
            head.headers = parts.headers;
            let cookies = head.headers.get_all(SET_COOKIE).iter();
            let cookies = cookies.filter_map(|cookie| cookie.to_str().ok().map(str::to_owned));
            head.cookies = cookies.collect();
            head.headers.remove(SET_COOKIE);
            with_body(head, body)
        }
        EventSource::Alb {
            multi_value_headers,
        } => {
            let mut head = AlbTargetGroupResponse::default();
            head.status_code = status_code;
            head.status_description = Some(parts.status.to_string());
            head.is_base64_encoded = is_base64;
            if multi_value_headers {
                head.multi_value_headers = parts.headers;
            } else {
                head.headers = parts.headers;
            }
            with_body(head, body)
        }
    }
}

fn with_body<H: Serialize>(head: H, body: String) -> Result<Bytes, Diagnostic> {
    #[derive(Serialize)]
    struct Response<H> {
        #[serde(flatten)]
        head: H,
        body: String,
    }
    let json = serde_json::to_vec(&Response { head, body });
    let json = json.map_err(|error| {
        let message = format!("The response cannot be encoded: {error}");
        diagnostic("Internal", message)
    });
    json.map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{HeaderValue, Response, StatusCode};
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
