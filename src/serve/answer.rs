//! Answers to Lambda events, each in the form that the event's sender expects.

use axum::body::Bytes;
use http::header;
use lambda_http::aws_lambda_events::{
    alb::AlbTargetGroupResponse,
    apigw::{ApiGatewayProxyResponse, ApiGatewayV2httpResponse},
    encodings,
};
use serde::Serialize;

use super::event::Origin;
use crate::wire::oxp;

/// The answer in the form that the event's sender expects.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Rest(ApiGatewayProxyResponse),
    Http(ApiGatewayV2httpResponse),
    Alb(AlbTargetGroupResponse),
}

impl Answer {
    pub(super) fn new(origin: Origin, parts: http::response::Parts, body: Bytes) -> Self {
        let status = parts.status;
        let mut headers = parts.headers;
        let is_encoded = headers.contains_key(header::CONTENT_ENCODING);
        let body = match String::from_utf8(body.into()) {
            Ok(text) if !is_encoded => encodings::Body::Text(text),
            Ok(text) => encodings::Body::Binary(text.into_bytes()),
            Err(error) => encodings::Body::Binary(error.into_bytes()),
        };
        let is_base64_encoded = matches!(body, encodings::Body::Binary(_));
        let status_code = i64::from(status.as_u16());
        match origin {
            Origin::Rest => {
                let mut answer = ApiGatewayProxyResponse::default();
                answer.status_code = status_code;
                // The gateway would send what stands in both maps twice.
                answer.multi_value_headers = headers;
                answer.body = Some(body);
                answer.is_base64_encoded = is_base64_encoded;
                Self::Rest(answer)
            }
            Origin::Http => {
                let mut answer = ApiGatewayV2httpResponse::default();
                let cookies = headers.get_all(header::SET_COOKIE).iter();
                answer.cookies = cookies
                    .filter_map(|cookie| cookie.to_str().ok().map(str::to_owned))
                    .collect();
                headers.remove(header::SET_COOKIE);
                answer.status_code = status_code;
                answer.headers = headers;
                answer.body = Some(body);
                answer.is_base64_encoded = is_base64_encoded;
                Self::Http(answer)
            }
            Origin::Alb {
                multi_value_headers,
            } => {
                let mut answer = AlbTargetGroupResponse::default();
                answer.status_code = status_code;
                answer.status_description = Some(status.to_string());
                if multi_value_headers {
                    answer.multi_value_headers = headers;
                } else {
                    answer.headers = headers;
                }
                answer.body = Some(body);
                answer.is_base64_encoded = is_base64_encoded;
                Self::Alb(answer)
            }
        }
    }
}

/// Whether a body of this size can be sent, base64 or not.
pub(super) fn fits(body: &Bytes, largest: usize) -> bool {
    body.len().div_ceil(3) * 4 <= largest
        || (std::str::from_utf8(body).is_ok() && oxp::size_as_sent(body) <= largest)
}
