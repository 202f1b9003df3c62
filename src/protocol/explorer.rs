//! The explorer: a page on which people see the tools as a model sees them, and call them.
//!
//! Before an agent uses a tool, its author should read what the agent will read and try a call. The
//! page needs no installation, and no other server than this one. It is one document with its style
//! and its script in it. Its policy names the hashes of these two, so that the browser runs and
//! applies nothing else, even if a tool's description contained markup and a mistake let it into the
//! document.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

use axum::{
    Router,
    extract::{Request, State},
    middleware::map_response,
    response::Response,
    routing::get,
};
use bytes::Bytes;
use http::{
    StatusCode,
    header::{RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::{Value, json};

use super::{
    admission::AppState,
    json_response::{insert, json_response, to_json},
    pages::{check_credentials, hash_source, html_response},
    problem,
};
use crate::{
    Caller, DEFAULT_TIMEOUT, ToolDefinition,
    arrival::{Arrival, fits},
    text::whole_milliseconds,
    tool::{repeats::RepeatPolicy, toolkit::ToolEntry},
};

/// The name of these requests in the log.
const OPERATION: &str = "explorer";

/// The mark of a response of the explorer. Its requests are not recorded as events: a page is not a
/// call, and a replay does not serve it.
#[derive(Clone, Copy)]
pub(crate) struct FromExplorer;

/// Returns the explorer's router, for paths that have no other route: the program's own may have the
/// same ones.
pub(super) fn router(app: Arc<AppState>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/explorer.json", get(listing))
        .layer(map_response(marked))
        .method_not_allowed_fallback(async || problem::method_not_allowed())
        .fallback(async |State(app): State<Arc<AppState>>| problem::not_found(&app.protocols))
        .with_state(app)
}

/// Serves the page. It contains nothing about the server, so a caller without credentials gets it
/// as well: a browser sends none when it opens a page.
async fn page(State(app): State<Arc<AppState>>, request: Request) -> Response {
    let Err(rejected) = check_credentials(&app, request, OPERATION, false).await else {
        return page_response(StatusCode::OK);
    };
    let mut response = page_response(rejected.status());
    for name in [WWW_AUTHENTICATE, RETRY_AFTER] {
        if let Some(value) = rejected.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// Serves the page's data to callers who may list the tools.
async fn listing(State(app): State<Arc<AppState>>, request: Request) -> Response {
    let arrival = Arrival::new(app.engine.clock.instant(), request.extensions());
    let largest = arrival.invocation.max_response_size();
    let caller = match check_credentials(&app, request, OPERATION, true).await {
        Ok(caller) => caller,
        Err(rejected) => return rejected,
    };
    let body = to_json(&listing_of(&app, largest, &caller));
    if !fits(&body, largest) {
        return problem::internal_error(
            "The list of tools is larger than the event source of this function can send.",
        );
    }
    let mut response = json_response(StatusCode::OK, body);
    insert(response.headers_mut(), &[("cache-control", "no-store")]);
    response
}

async fn marked(mut response: Response) -> Response {
    response.extensions_mut().insert(FromExplorer);
    response
}

/// Returns the server and the tools that `reader` sees in lists. `largest` is the maximum size of a
/// response.
///
/// This is more than any protocol's list has: all versions, and the properties of tools that only
/// this library knows. It is not a protocol, and may change with any version of the page.
fn listing_of(app: &AppState, largest: usize, reader: &Caller) -> Value {
    let engine = &app.engine;
    let tools = app.listed_tools(reader, None);
    let newest: HashSet<_> = engine.toolkit.newest().map(|it| &it.id).collect();
    let versions = tools.entries();
    let versions = versions.map(|entry| version_of(entry, newest.contains(&entry.id)));
    json!({
        "server": app.info,
        "protocols": app.protocols.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>(),
        "requires_credentials": !engine.auth.is_open(),
        // A repeated `call_id` does not run the tool again.
        "recognizes_call_ids": engine.deduplication.is_on(),
        "limits": {"request_bytes": app.max_request_size, "response_bytes": largest},
        "tools": versions.collect::<Vec<_>>(),
    })
}

/// Returns one version of one tool. Protocols without versions call the newest one.
fn version_of(entry: &ToolEntry, is_newest: bool) -> Value {
    let tool = &entry.tool;
    let qualified = entry.id.qualified();
    let mut version = json!(ToolDefinition::of(&entry.id, tool));
    version["toolkit"] = qualified.split('.').next().unwrap_or(qualified).into();
    version["title"] = tool.title.as_deref().into();
    version["is_newest"] = is_newest.into();
    version["scopes"] = json!(tool.scopes);
    version["repeats"] = match tool.policy {
        RepeatPolicy::Idempotent => "idempotent",
        RepeatPolicy::Recorded => "recorded",
        RepeatPolicy::AtMostOnce => "at_most_once",
    }
    .into();
    // Those that the tool's author did not set are `null`.
    version["hints"] = json!({
        "read_only": tool.hints.is_read_only,
        "destructive": tool.hints.is_destructive,
        "open_world": tool.hints.is_open_world,
    });
    let timeout = tool.timeout.unwrap_or(DEFAULT_TIMEOUT);
    version["timeout_ms"] = whole_milliseconds(timeout).into();
    version["returns_content"] = tool.returns_content.into();
    version
}

/// The document, with a place for the style and one for the script.
const DOCUMENT: &str = include_str!("explorer/page.html");

const STYLE: &str = include_str!("explorer/style.css");

/// The parts of the script, in the order in which they run.
const SCRIPTS: [&str; 14] = [
    include_str!("explorer/json.js"),
    include_str!("explorer/dom.js"),
    include_str!("explorer/schema.js"),
    include_str!("explorer/controls.js"),
    include_str!("explorer/composites.js"),
    include_str!("explorer/editor.js"),
    include_str!("explorer/server.js"),
    include_str!("explorer/protocols.js"),
    include_str!("explorer/copies.js"),
    include_str!("explorer/result.js"),
    include_str!("explorer/challenges.js"),
    include_str!("explorer/tool.js"),
    include_str!("explorer/tools.js"),
    include_str!("explorer/start.js"),
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
fn page_response(status: StatusCode) -> Response {
    let mut response = html_response(PAGE.html.clone(), &PAGE.policy, "no-referrer");
    *response.status_mut() = status;
    response
}
