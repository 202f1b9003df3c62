//! Cross-origin resource sharing: what browsers let pages of other origins send and read.
//!
//! This is for all routes: a browser asks before it sends credentials, and needs the headers on
//! errors, too. Reference: Fetch, CORS protocol.

use std::sync::{Arc, LazyLock};

use axum::{body::Body, extract::Request, response::Response};
#[cfg(any(feature = "oauth", feature = "oidc"))]
use axum::{extract::State, middleware::Next};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{Protocol, app::AppState, json_response::insert};
use crate::arrival::Invocation;

/// The response headers that pages may read.
static EXPOSED: LazyLock<HeaderValue> = LazyLock::new(|| {
    let names: Vec<_> = Protocol::response_headers().collect();
    HeaderValue::try_from(names.join(", ")).expect("header names are valid in a header")
});

/// The headers of every response to a preflight request; the time is in seconds.
const ALLOWED: &[(&str, &str)] = &[
    ("access-control-allow-methods", "GET, POST, DELETE"),
    ("access-control-max-age", "3600"),
];

/// The origin of the page that sent a request and may read the response, if any.
pub(super) struct Reader(Option<HeaderValue>);

impl Reader {
    pub(super) fn of(app: &AppState, request: &Request) -> Self {
        let headers = request.headers();
        let origin = headers.get(header::ORIGIN).filter(|_| {
            let invocation = request.extensions().get::<Arc<Invocation>>();
            app.shares_with(headers, invocation.and_then(|it| it.base_url.as_deref()))
        });
        Self(origin.cloned())
    }

    /// Returns the response to a preflight request.
    pub(super) fn preflight(&self, request: &Request) -> Option<Response> {
        let is_asked = request.method() == Method::OPTIONS;
        let origin = self.0.clone().filter(|_| is_asked)?;
        Some(preflight(origin, request.headers()))
    }

    /// Lets the page read a response.
    pub(super) fn share(self, mut response: Response) -> Response {
        let Some(origin) = self.0 else {
            return response;
        };
        let headers = response.headers_mut();
        let allowed = headers.entry(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        allowed.or_insert(origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED.clone());
        // In one value: an event's response has room for no other.
        let vary = headers.get(header::VARY).and_then(|it| it.to_str().ok());
        let vary = vary.map(|it| HeaderValue::try_from(format!("{it}, origin")));
        let vary = vary.unwrap_or(Ok(HeaderValue::from_static("origin")));
        vary.map(|vary| headers.insert(header::VARY, vary)).ok();
        response
    }
}

/// Answers the preflight requests of allowed pages, and lets them read all responses.
pub(super) async fn share<F: Future<Output = Response>>(
    app: &AppState,
    request: Request,
    serve: impl FnOnce(Request) -> F,
) -> Response {
    let reader = Reader::of(app, &request);
    let response = match reader.preflight(&request) {
        Some(preflight) => preflight,
        None => serve(request).await,
    };
    reader.share(response)
}

/// Does the same for routes of other states.
#[cfg(any(feature = "oauth", feature = "oidc"))]
pub(super) async fn layer(
    State(app): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Response {
    share(&app, request, |request| next.run(request)).await
}

/// Answers the preflight request of any page, for endpoints that need nothing that a browser adds.
#[cfg(feature = "oidc")]
pub(super) async fn with_anyone(headers: HeaderMap) -> Response {
    preflight(HeaderValue::from_static("*"), &headers)
}

/// Allows a page to send the headers that it asks for.
fn preflight(origin: HeaderValue, sent: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    insert(headers, ALLOWED);
    let names = sent.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let names = names.unwrap_or(HeaderValue::from_static("authorization, content-type"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    response
}
