//! Responses that are streams, for event sources that pass their parts on as they come.
//!
//! AWS Lambda Developer Guide, "Response streaming for Lambda functions"; "Using the Lambda runtime
//! API for custom runtimes".

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use futures_util::{StreamExt, stream};
use http::{HeaderMap, StatusCode, header::SET_COOKIE, response::Parts};
use serde_json::json;

use super::{EventResponse, EventSource, collected, encoding::EventBody};
use crate::protocol::problem;

/// A response whose body may still have to come.
pub(crate) struct StreamedResponse {
    pub(crate) source: EventSource,
    pub(crate) parts: Parts,
    pub(crate) body: Body,
}

/// The separator between the prelude and the body.
const SEPARATOR: [u8; 8] = [0; 8];

impl StreamedResponse {
    /// Returns the status, and the headers with one value for each name, because the prelude has no
    /// place for more.
    pub(crate) fn head(&self) -> (StatusCode, HeaderMap, Vec<String>) {
        let mut headers = HeaderMap::new();
        let values = |name| {
            let values = self.parts.headers.get_all(name).iter();
            values.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned())
        };
        for name in self.parts.headers.keys().filter(|it| **it != SET_COOKIE) {
            if let Ok(value) = values(name).collect::<Vec<_>>().join(", ").try_into() {
                headers.insert(name, value);
            }
        }
        (self.parts.status, headers, values(&SET_COOKIE).collect())
    }

    /// Returns the prelude and its separator, as the runtime API expects them before the body.
    pub(crate) fn prelude(&self) -> Bytes {
        let (status, headers, cookies) = self.head();
        let headers = headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str(), value)
        });
        let prelude = json!({
            "statusCode": status.as_u16(),
            "headers": headers.collect::<BTreeMap<_, _>>(),
            "cookies": cookies,
        });
        [prelude.to_string().as_bytes(), &SEPARATOR].concat().into()
    }

    /// Sets the work after the last part, which the end of the body waits for.
    pub(crate) fn flush_after(&mut self, flush: impl Future<Output = ()> + Send + 'static) {
        let parts = std::mem::take(&mut self.body).into_data_stream();
        let end = stream::once(flush).filter_map(async |()| None);
        self.body = Body::from_stream(parts.chain(end));
    }

    /// Waits for the whole body, for an event source that cannot take it in parts.
    pub(crate) async fn whole(self) -> EventResponse {
        let source = self.source;
        let detail = match collected(self.body).await {
            Ok(body) => {
                let body = EventBody::of(&self.parts, body);
                if body.fits(source.largest_response()) {
                    return EventResponse::new(source, self.parts, body);
                }
                "The response is too large to send.".to_owned()
            }
            Err(error) => format!("The response ended early: {error}"),
        };
        let (parts, body) = problem::internal_error(&detail).into_parts();
        let body = EventBody::of(&parts, collected(body).await.unwrap_or_default());
        EventResponse::new(source, parts, body)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{HeaderValue, Response};
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
