//! The explorer's page and its data, behind the credentials that the server requires.

use std::{collections::HashSet, sync::Arc};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use http::{
    StatusCode,
    header::{RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::{Value, json};

use super::{
    app::AppState,
    exchange::Exchange,
    json_response::{insert, json_response, to_json},
    problem,
};
use crate::{
    Caller, DEFAULT_TIMEOUT, ToolDefinition,
    arrival::{Arrival, fits},
    text::whole_milliseconds,
    tool::{repeats::RepeatPolicy, toolkit::ToolEntry},
};

/// The mark of a response of the explorer. Its requests are not recorded as events: a page is not a
/// call, and a replay does not serve it.
#[derive(Clone, Copy)]
pub(crate) struct FromExplorer;

/// Returns the explorer's router, for paths that have no other route: the program's own may have the
/// same ones.
pub(super) fn router(app: Arc<AppState>) -> Router {
    let data = Arc::clone(&app);
    let listing = async move |Extension(caller): Extension<Caller>, request: Request| {
        listing(&data, &caller, &request)
    };
    lambda_tools_explorer::router(listing)
        .layer(from_fn_with_state(Arc::clone(&app), admitted))
        .method_not_allowed_fallback(async || problem::method_not_allowed())
        .fallback(async move || problem::not_found(&app))
}

/// Responds to callers who may list the tools. A browser sends no credentials when it opens the page,
/// so others get the page as well, with the status of their refusal.
async fn admitted(State(app): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    let is_page = request.uri().path() == "/";
    let mut response = match Exchange::admit(&app, request, "explorer", !is_page).await {
        Ok(admitted) => {
            let mut request = Request::from_parts(admitted.parts, Body::empty());
            request.extensions_mut().insert(admitted.caller);
            next.run(request).await
        }
        Err(refused) if is_page => {
            let mut page = lambda_tools_explorer::page();
            *page.status_mut() = refused.status();
            for name in [WWW_AUTHENTICATE, RETRY_AFTER] {
                if let Some(value) = refused.headers().get(&name) {
                    page.headers_mut().insert(name, value.clone());
                }
            }
            page
        }
        Err(refused) => refused,
    };
    response.extensions_mut().insert(FromExplorer);
    response
}

/// Returns the page's data for a caller.
fn listing(app: &AppState, caller: &Caller, request: &Request) -> Response {
    let arrival = Arrival::new(app.engine.clock.instant(), request.extensions());
    let largest = arrival.invocation.max_response_size();
    let body = to_json(&listing_of(app, largest, caller));
    if !fits(&body, largest) {
        return problem::internal_error(
            "The list of tools is larger than the event source of this function can send.",
        );
    }
    let mut response = json_response(StatusCode::OK, body);
    insert(response.headers_mut(), &[("cache-control", "no-store")]);
    response
}

/// Returns the server, and the tools, resources and prompts that `reader` sees in lists. `largest` is the maximum size of a
/// response.
///
/// This is more than any protocol's list has: all versions, and the properties of tools that only
/// this library knows.
fn listing_of(app: &AppState, largest: usize, reader: &Caller) -> Value {
    let engine = &app.engine;
    let tools = app.listed_tools(Some(reader), None);
    let newest: HashSet<_> = engine.toolkit.newest().map(|it| &it.id).collect();
    let versions = tools.entries();
    let versions = versions.map(|entry| version_of(entry, newest.contains(&entry.id)));
    let resources = tools.resources().map(|(uri, entry)| (Some(uri), entry));
    let others = resources.chain(tools.prompts().map(|entry| (None, entry)));
    let others = others.map(|(uri, entry)| {
        let mut other = version_of(entry, true);
        other["name"] = entry.id.name().into();
        other["uri"] = uri.into();
        other["is_read"] = true.into();
        other
    });
    json!({
        "server": app.info,
        "protocols": app.protocols.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>(),
        "requires_credentials": !engine.auth.is_open(),
        // A repeated `call_id` does not run the tool again.
        "recognizes_call_ids": engine.deduplication.is_on(),
        "limits": {"request_bytes": app.max_request_size, "response_bytes": largest},
        // Only MCP has resources and prompts, which look like tools here.
        "tools": versions.chain(others).collect::<Vec<_>>(),
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
