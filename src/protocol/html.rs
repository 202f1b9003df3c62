//! HTML responses, whose policy names everything that the browser may run and apply.

use axum::{body::Body, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderValue,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use sha2::{Digest, Sha256};

/// CSP Level 3, section 2.3.1: the `hash-source` of a style or a script in the document.
pub(super) fn hash_source(content: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content)))
}

/// A page with its Content-Security-Policy and Referrer-Policy.
pub(super) fn html_response(html: impl Into<Body>, policy: &str, referrer: &str) -> Response {
    let mut response = Response::new(html.into());
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, referrer),
        (CACHE_CONTROL, "no-store"),
    ] {
        let value = HeaderValue::try_from(value).expect("our own policies are ASCII");
        response.headers_mut().insert(name, value);
    }
    response
}
