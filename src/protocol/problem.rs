//! Error responses that belong to no protocol: about a path, a method, a body or a host.
//!
//! They have the format of the first protocol's errors, which resembles that of HTTP frameworks.

use std::time::Duration;

use axum::response::Response;
use http::{HeaderValue, StatusCode, header::CONNECTION};
use serde_json::json;

use super::{First, app::AppState, codec::reply, json_response::to_json};

/// The message about a body that cannot be read.
pub(super) const UNDECODABLE: &str = "The request body cannot be decoded";

/// Returns the routes of the served protocols, as one sentence.
fn routes_in_words(app: &AppState) -> String {
    let parts = app.protocols.iter().map(|protocol| {
        let routes = protocol.routes(app.has_openapi);
        let routes: Vec<_> = routes
            .map(|(method, path)| format!("{method} {path}"))
            .collect();
        let routes = match routes.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        };
        match protocol.declaration().title {
            Some(title) => format!("for {title} {routes}"),
            None => routes,
        }
    });
    let parts: Vec<_> = parts.collect();
    format!("This server has {}.", parts.join(", and "))
}

/// Responds to a request for a path that has no route.
pub(super) fn not_found(app: &AppState) -> Response {
    problem(
        StatusCode::NOT_FOUND,
        "There is nothing at this path",
        &routes_in_words(app),
    )
}

/// Responds to a known path with an unsupported method; the router adds `Allow`.
pub(super) fn method_not_allowed() -> Response {
    problem(
        StatusCode::METHOD_NOT_ALLOWED,
        "This path does not support this method",
        "The Allow header lists the supported methods.",
    )
}

/// Responds to a body that cannot be recorded.
pub(crate) fn undecodable_body(detail: &str) -> Response {
    problem(StatusCode::BAD_REQUEST, UNDECODABLE, detail)
}

/// Responds in place of a response, from one of the owner's routes, that cannot be sent.
pub(crate) fn internal_error(detail: &str) -> Response {
    problem(
        StatusCode::INTERNAL_SERVER_ERROR,
        "The response cannot be sent",
        detail,
    )
}

/// Responds to a request that a local server rejects to keep web pages out.
pub(crate) fn forbidden(detail: &str) -> Response {
    problem(
        StatusCode::FORBIDDEN,
        "This request is not allowed here",
        detail,
    )
}

/// Responds to a body that exceeded a local server's time limit. The rest may still arrive, so the
/// connection cannot be reused.
pub(crate) fn late(limit: Duration) -> Response {
    let limit = limit.as_secs_f64();
    let mut response = problem(
        StatusCode::REQUEST_TIMEOUT,
        "The request did not arrive in time",
        &format!("The body must arrive within {limit} seconds of the headers."),
    );
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

fn problem(status: StatusCode, message: &str, detail: &str) -> Response {
    let body = json!({"message": message, "developer_message": detail});
    reply::<First>(status, to_json(&body))
}
