//! The explorer: a page on which people see the tools as a model sees them, and call them.
//!
//! Before an agent uses a tool, its author should read what the agent will read and try a call. The
//! page needs no installation, and no other server than this one.

mod listing;
mod page;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::get,
};
use http::{
    StatusCode,
    header::{RETRY_AFTER, WWW_AUTHENTICATE},
};

use super::{
    Protocol,
    admission::AppState,
    json_response::{insert, json_response, to_json},
    pages::check_credentials,
    problem,
};
use crate::{
    ServerInfo,
    arrival::{Arrival, fits},
};
use listing::listing_of;

/// The name of these requests in the log.
const OPERATION: &str = "explorer";

/// The mark of a response of the explorer. Its requests are not recorded as events: a page is not a
/// call, and a replay does not serve it.
#[derive(Clone, Copy)]
pub(crate) struct FromExplorer;

/// Returns the explorer's routes. They come after the program's own routes, which may have the same
/// paths.
pub(super) fn routes(app: Arc<AppState>, served: &[Protocol], info: &ServerInfo) -> Router {
    let served = Arc::new((info.clone(), served.to_vec()));
    let listing = async move |State(app): State<Arc<AppState>>, request: Request| {
        marked(listing(&app, request, &served.0, &served.1).await)
    };
    Router::new()
        .route("/", get(page))
        .route("/explorer.json", get(listing))
        .method_not_allowed_fallback(async || problem::method_not_allowed())
        .with_state(app)
}

/// Serves the page. It contains nothing about the server, so a caller without credentials gets it
/// as well: a browser sends none when it opens a page.
async fn page(State(app): State<Arc<AppState>>, request: Request) -> Response {
    let Err(rejected) = check_credentials(&app, request, OPERATION, false).await else {
        return marked(page::response(StatusCode::OK));
    };
    let mut response = page::response(rejected.status());
    for name in [WWW_AUTHENTICATE, RETRY_AFTER] {
        if let Some(value) = rejected.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    marked(response)
}

/// Serves the page's data to callers who may list the tools.
async fn listing(
    app: &AppState,
    request: Request,
    info: &ServerInfo,
    protocols: &[Protocol],
) -> Response {
    let arrival = Arrival::new(app.engine.clock.instant(), request.extensions());
    let largest = arrival.invocation.max_response_size();
    let caller = match check_credentials(app, request, OPERATION, true).await {
        Ok(caller) => caller,
        Err(rejected) => return rejected,
    };
    let body = to_json(&listing_of(app, info, protocols, largest, &caller));
    if !fits(&body, largest) {
        return problem::internal_error(
            "The list of tools is larger than the event source of this function can send.",
        );
    }
    let mut response = json_response(StatusCode::OK, body.into());
    insert(response.headers_mut(), &[("cache-control", "no-store")]);
    response
}

fn marked(mut response: Response) -> Response {
    response.extensions_mut().insert(FromExplorer);
    response
}
