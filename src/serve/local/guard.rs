//! Keeps web pages out.
//!
//! A page in a developer's browser can send requests to this machine and to those near it, across
//! origins or after pointing its own name at them; tools may do more than its author should be able
//! to ask for. Browsers always say which host they ask and, where it matters, for which page.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use http::{HeaderMap, HeaderName, header, uri::Authority};

use super::{allowed_hosts::AllowedHosts, host_name::HostName};
use crate::protocol::problem;

/// Lets only requests through to `router` that name allowed hosts.
pub(super) fn protect(router: Router, allowed: Option<AllowedHosts>) -> Router {
    let Some(allowed) = allowed else {
        return router;
    };
    router.layer(middleware::from_fn_with_state(Arc::new(allowed), guard))
}

async fn guard(State(allowed): State<Arc<AllowedHosts>>, request: Request, next: Next) -> Response {
    match check(&allowed, &request) {
        Ok(()) => next.run(request).await,
        Err(why) => problem::forbidden(&why),
    }
}

fn check(allowed: &AllowedHosts, request: &Request) -> Result<(), String> {
    let headers = request.headers();
    let target = in_target(request.uri().authority())?;
    let host = in_header(headers, &header::HOST, HostName::in_authority)?;
    let origin = in_header(headers, &header::ORIGIN, HostName::in_origin)?;
    for asked in [&target, &host].into_iter().flatten() {
        if !allowed.has(asked) {
            return Err(not_allowed("is for", asked));
        }
    }
    match origin {
        Some(origin) if !allowed.has_origin(&origin, host.as_ref()) => {
            Err(not_allowed("comes from a page of", &origin))
        }
        _ => Ok(()),
    }
}

/// Reads the host of an absolute target, the form in which proxies are asked.
fn in_target(authority: Option<&Authority>) -> Result<Option<HostName>, String> {
    let Some(authority) = authority else {
        return Ok(None);
    };
    let host = HostName::in_authority(authority.as_str());
    host.map(Some).ok_or_else(|| unreadable("target"))
}

/// Reads the host in a header that may occur once. Programs may leave `Host` out; no browser does.
fn in_header(
    headers: &HeaderMap,
    name: &HeaderName,
    read: fn(&str) -> Option<HostName>,
) -> Result<Option<HostName>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(unreadable(&format!("{name} header")));
    }
    let host = value.to_str().ok().and_then(read);
    host.map(Some)
        .ok_or_else(|| unreadable(&format!("{name} header")))
}

fn not_allowed(is: &str, host: &HostName) -> String {
    format!(
        "This local server keeps web pages out. The request {is} {host}; if that is right, add \
         {host} to ALLOWED_HOSTS, the names that are allowed besides localhost, and start the \
         server again."
    )
}

fn unreadable(place: &str) -> String {
    format!(
        "This local server keeps web pages out. The request's {place} does not name one host with \
         or without a port; only ALLOWED_HOSTS=* takes such requests, and every page's with them."
    )
}
