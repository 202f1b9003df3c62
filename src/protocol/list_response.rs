//! The response with a list or a document: which representation of it a client gets, or that the
//! one which it has is still current.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY},
    request::Parts,
};

use super::{
    codec::Codec,
    conditional::IfNoneMatch,
    content_coding::{self, Coding},
    json_response::reply,
    representation::{Representation, Representations},
};
use crate::arrival::Invocation;

/// RFC 9111: a list may depend on its reader, so no shared cache may store it (section 5.2.2.7), and
/// it changes with a deployment, so a private one must ask whether it is still current (5.2.2.4).
const CACHING: HeaderValue = HeaderValue::from_static("private, no-cache");

/// The response; `None` if no representation that the client accepts can be sent.
pub(super) fn response<P: Codec>(
    list: &Representations,
    request: &Parts,
    invocation: &Invocation,
) -> Option<Response> {
    if !is_get(request) {
        let plain = sendable(list, &[Coding::Identity], invocation)?;
        return Some(reply::<P>(StatusCode::OK, plain.body().into()));
    }
    let accepted = if invocation.sends_binary {
        content_coding::accepted(&request.headers)
    } else {
        &[Coding::Identity]
    };
    let current = current(list, accepted, &request.headers);
    let (mut response, coding) = if let Some(coding) = current {
        (not_modified::<P>(), coding)
    } else {
        let chosen = sendable(list, accepted, invocation)?;
        (with_body::<P>(chosen), chosen.coding())
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, list.tag(coding));
    headers.insert(CACHE_CONTROL, CACHING);
    headers.insert(
        VARY,
        HeaderValue::from_static(P::DECLARATION.list_varies_by),
    );
    Some(response)
}

/// The coding of the current representation that the client has.
fn current(list: &Representations, accepted: &[Coding], headers: &HeaderMap) -> Option<Coding> {
    let mut accepted = accepted.iter().copied();
    match IfNoneMatch::of(headers)? {
        IfNoneMatch::Any => accepted.find(|coding| list.get(*coding).is_some()),
        IfNoneMatch::Tags(tags) => accepted.find(|coding| {
            let tag = list.tag(*coding);
            tags.iter().any(|it| it.as_bytes() == tag.as_bytes())
        }),
    }
}

/// The first representation that is not too large.
fn sendable<'a>(
    list: &'a Representations,
    accepted: &[Coding],
    invocation: &Invocation,
) -> Option<&'a Arc<Representation>> {
    let mut made = accepted.iter().filter_map(|coding| list.get(*coding));
    made.find(|it| it.fits(invocation.max_response_size))
}

/// RFC 9110, section 15.4.5: no body, and so no type.
fn not_modified<P: Codec>() -> Response {
    let mut response = reply::<P>(StatusCode::NOT_MODIFIED, Body::empty());
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

fn with_body<P: Codec>(representation: &Arc<Representation>) -> Response {
    let mut response = reply::<P>(StatusCode::OK, representation.body().into());
    if representation.coding() == Coding::Gzip {
        let gzip = HeaderValue::from_static("gzip");
        response.headers_mut().insert(CONTENT_ENCODING, gzip);
    }
    // An event's response takes the body from here.
    let extensions = response.extensions_mut();
    extensions.insert(Arc::clone(representation));
    response
}

/// Says why no representation can be sent; `name` is the list's.
pub(super) fn too_large(
    name: &str,
    list: &Representations,
    request: &Parts,
    invocation: &Invocation,
) -> String {
    let detail = format!("The {name} is larger than the event source of this function can send.");
    let can_compress = is_get(request) && invocation.sends_binary;
    if can_compress && sendable(list, &[Coding::Gzip], invocation).is_some() {
        return format!("{detail} Clients that accept gzip (Accept-Encoding) can get it.");
    }
    detail
}

fn is_get(request: &Parts) -> bool {
    [Method::GET, Method::HEAD].contains(&request.method)
}
