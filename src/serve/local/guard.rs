//! Protection against web pages.
//!
//! A page in a developer's browser can send requests to this machine and its network, across
//! origins or by DNS rebinding, and tools may do more than the page's author should be able to
//! request. Browsers always name the host of a request and, where it matters, the page's origin.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use http::{HeaderMap, HeaderName, header, uri::Authority};

use super::allowed_hosts::AllowedHosts;
use crate::{host_name::HostName, protocol::problem};

/// Rejects requests to `router` that name a host that is not allowed.
pub(super) fn protect(router: Router, allowed: Option<AllowedHosts>) -> Router {
    let Some(allowed) = allowed else {
        return router;
    };
    router.layer(middleware::from_fn_with_state(Arc::new(allowed), guard))
}

async fn guard(State(allowed): State<Arc<AllowedHosts>>, request: Request, next: Next) -> Response {
    match check(&allowed, &request) {
        Ok(()) => next.run(request).await,
        Err(detail) => problem::forbidden(&detail),
    }
}

fn check(allowed: &AllowedHosts, request: &Request) -> Result<(), String> {
    let headers = request.headers();
    let target = in_target(request.uri().authority())?;
    let host = in_header(headers, &header::HOST, HostName::in_authority)?;
    let origin = in_header(headers, &header::ORIGIN, HostName::in_origin)?;
    for host in [&target, &host].into_iter().flatten() {
        if !allowed.has(host) {
            return Err(not_allowed("is for", host));
        }
    }
    match origin {
        Some(origin) if !allowed.has_origin(&origin, host.as_ref()) => {
            Err(not_allowed("comes from a page of", &origin))
        }
        _ => Ok(()),
    }
}

/// Reads the host of an absolute target, the form for requests to proxies.
fn in_target(authority: Option<&Authority>) -> Result<Option<HostName>, String> {
    let Some(authority) = authority else {
        return Ok(None);
    };
    let host = HostName::in_authority(authority.as_str());
    host.map(Some).ok_or_else(|| unreadable("target"))
}

/// Reads the host in a header that may occur only once. Programs may omit `Host`; no browser does.
fn in_header(
    headers: &HeaderMap,
    name: &HeaderName,
    parse: fn(&str) -> Option<HostName>,
) -> Result<Option<HostName>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(unreadable(&format!("{name} header")));
    }
    let host = value.to_str().ok().and_then(parse);
    host.map(Some)
        .ok_or_else(|| unreadable(&format!("{name} header")))
}

fn not_allowed(relation: &str, host: &HostName) -> String {
    format!(
        "This local server blocks requests from web pages. The request {relation} {host}; if that is right, \
         add {host} to ALLOWED_HOSTS, the names that are allowed besides localhost, and start the \
         server again."
    )
}

fn unreadable(place: &str) -> String {
    format!(
        "This local server blocks requests from web pages. The request's {place} does not name one \
         host with or without a port; only ALLOWED_HOSTS=* accepts such requests, but it also accepts \
         requests from every web page."
    )
}
