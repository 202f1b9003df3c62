//! The page: one document with its style and its script in it.
//!
//! Its policy names the hashes of these two, so that the browser runs and applies nothing else, even
//! if a tool's description contained markup and a mistake let it into the document.

use std::sync::LazyLock;

use axum::{body::Body, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderValue, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use sha2::{Digest, Sha256};

/// The document, with a place for the style and one for the script.
const DOCUMENT: &str = include_str!("page.html");

const STYLE: &str = include_str!("style.css");

/// The parts of the script, in the order in which they run.
const SCRIPTS: [&str; 14] = [
    include_str!("json.js"),
    include_str!("dom.js"),
    include_str!("schema.js"),
    include_str!("controls.js"),
    include_str!("composites.js"),
    include_str!("editor.js"),
    include_str!("server.js"),
    include_str!("protocols.js"),
    include_str!("copies.js"),
    include_str!("result.js"),
    include_str!("challenges.js"),
    include_str!("tool.js"),
    include_str!("tools.js"),
    include_str!("start.js"),
];

/// The document and its policy, made on first use.
struct Page {
    html: Bytes,
    policy: HeaderValue,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    // One scope: the parts use each other's functions, and none is visible to anything else.
    let script = format!("(() => {{\n'use strict';\n{}}})();\n", SCRIPTS.concat());
    let html = DOCUMENT
        .replace("<style></style>", &format!("<style>{STYLE}</style>"))
        .replace("<script></script>", &format!("<script>{script}</script>"));
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(&script),
        hash(STYLE)
    );
    Page {
        html: html.into(),
        policy: HeaderValue::try_from(policy).expect("our own policies are ASCII"),
    }
});

/// CSP Level 3, section 2.3.1.
fn hash(content: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(content)))
}

/// The page with this status.
pub(super) fn response(status: StatusCode) -> Response {
    let mut response = Response::new(Body::from(PAGE.html.clone()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, PAGE.policy.clone());
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
