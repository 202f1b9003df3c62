//! The drivers: each admits what it is given in its own way, and leaves the rest to the exchange.
//!
//! An HTTP request is routed to its protocol. An event that is a call by itself has no route, and its
//! answer is a body alone; the headers and the credentials of a client are there only if its invoker
//! passes them on. A task was admitted when its call was handed over.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::{get, post},
};
use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt, Collected};

pub(crate) use super::{admission::Admission, exchange::perform};
use super::{
    admission::AuthenticatedRequest,
    app::AppState,
    codec::{Codec, Purpose},
    cors::Reader,
    exchange::Exchange,
    refusal::Refusal,
};
use crate::arrival::{Arrival, Invocation};

/// Adds the routes of a protocol.
pub(super) fn mount<P: Codec>(
    router: Router<Arc<AppState>>,
    protocol: P,
    app: &AppState,
) -> Router<Arc<AppState>> {
    let protocol = Arc::new(protocol);
    let own = P::DECLARATION.routes(app.has_openapi);
    let all = own.chain(P::DECLARATION.aliases);
    all.fold(router, |router, route| {
        let handler = |purpose: Purpose| {
            let protocol = Arc::clone(&protocol);
            move |State(app): State<Arc<AppState>>, request: Request| {
                serve(app, Arc::clone(&protocol), purpose, request)
            }
        };
        let mut served = if route.method == Method::POST {
            post(handler(route.purpose))
        } else {
            get(handler(route.purpose))
        };
        if P::DECLARATION.takes_all_methods {
            // The router adds `Allow`.
            served = served.fallback(handler(Purpose::Fixed("unsupported")));
        }
        router.route(route.path, served)
    })
}

async fn serve<P: Codec>(
    app: Arc<AppState>,
    protocol: Arc<P>,
    purpose: Purpose,
    request: Request,
) -> Response {
    let reader = Reader::of(&app, &request);
    if let Some(preflight) = reader.preflight(&request) {
        return reader.share(preflight);
    }
    let arrival = Arrival::new(app.engine.clock.instant(), request.extensions());
    let exchange = Exchange::begin(&app, protocol, &arrival, request.headers(), purpose);
    let base = arrival.invocation.base_url.as_deref();
    let admitted = match purpose {
        Purpose::Health => Ok(AuthenticatedRequest::anonymous(request)),
        _ if !app.allows_origin(request.headers(), base) => Err(Refusal::ForbiddenOrigin),
        _ => app.admit(request, &arrival, P::is_health_check).await,
    };
    reader.share(exchange.respond(admitted).await)
}

/// Answers an event that is a call by itself. `span` is the name of its span.
pub(super) async fn answer<P: Codec>(
    app: &Arc<AppState>,
    protocol: P,
    span: &'static str,
    request: http::Request<Bytes>,
    admission: Admission,
    invocation: Invocation,
) -> Bytes {
    let arrival = Arrival::of(app.engine.clock.instant(), invocation);
    let (protocol, purpose) = (Arc::new(protocol), Purpose::Event(span));
    let exchange = Exchange::begin(app, protocol, &arrival, request.headers(), purpose);
    let admitted = app.admit_event(request, admission, &arrival);
    // Boxed because it is large, and each function around it would move it.
    let response = Box::pin(exchange.respond(admitted.await)).await;
    let body = response.into_body().collect().await;
    body.map(Collected::to_bytes).unwrap_or_default()
}
