//! The page: one document with its style and its script in it.
//!
//! Its policy names the hashes of these two, so that the browser runs and applies nothing else, even
//! if a tool's description contained markup and a mistake let it into the document.

use std::sync::LazyLock;

use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;

use crate::protocol::pages::{hash_source, html_response};

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
    policy: String,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    // One scope: the parts use each other's functions, and none is visible to anything else.
    let script = format!("(() => {{\n'use strict';\n{}}})();\n", SCRIPTS.concat());
    let html = DOCUMENT
        .replace("<style></style>", &format!("<style>{STYLE}</style>"))
        .replace("<script></script>", &format!("<script>{script}</script>"));
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash_source(&script),
        hash_source(STYLE)
    );
    Page {
        html: html.into(),
        policy,
    }
});

/// Returns the page with this status.
pub(super) fn response(status: StatusCode) -> Response {
    let mut response = html_response(PAGE.html.clone(), &PAGE.policy, "no-referrer");
    *response.status_mut() = status;
    response
}
