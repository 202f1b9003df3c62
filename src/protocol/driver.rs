//! The drivers: each admits what it is given in its own way, and leaves the rest to the exchange or
//! to the engine.
//!
//! An HTTP request is routed to its protocol. An event that is a call by itself has no route, and its
//! answer is a body alone; the headers and the credentials of a client are there only if its invoker
//! passes them on. A task was admitted when its call was handed over, and is logged like any other.

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

pub(crate) use super::admission::Admission;
use super::{
    app::AppState,
    codec::{Codec, Purpose},
    cors,
    exchange::{self, Exchange},
};
use crate::{
    StoreError,
    arrival::{Arrival, Invocation},
    call::background::Ticket,
    idempotency::deduplication::task::NotStarted,
};

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
    let serve = async |request: Request| {
        let arrival = Arrival::new(app.engine.clock.instant(), request.extensions());
        let exchange = Exchange::begin(&app, protocol, &arrival, request.headers(), purpose);
        let admitted = app.admit_to(purpose, request, &arrival, P::is_health_check);
        exchange.respond(admitted.await).await
    };
    cors::share(&app, request, serve).await
}

/// An event that is a call by itself, and what its invoker sent besides it.
pub(crate) struct EventCall {
    pub(crate) request: http::Request<Bytes>,
    pub(crate) admission: Admission,
    pub(crate) invocation: Invocation,
}

/// Answers an event. `span` is the name of its span.
pub(super) async fn answer<P: Codec>(
    app: &Arc<AppState>,
    protocol: P,
    span: &'static str,
    call: EventCall,
) -> Bytes {
    let arrival = Arrival::of(app.engine.clock.instant(), call.invocation);
    let (protocol, purpose) = (Arc::new(protocol), Purpose::Event(span));
    let exchange = Exchange::begin(app, protocol, &arrival, call.request.headers(), purpose);
    let admitted = app.admit_event(call.request, call.admission, &arrival);
    // Boxed because it is large, and each function around it would move it.
    let response = Box::pin(exchange.respond(admitted.await)).await;
    let body = response.into_body().collect().await;
    body.map(Collected::to_bytes).unwrap_or_default()
}

/// Performs the task of a ticket, unless it has been started before. Returns false if there is no such
/// task.
pub(crate) async fn perform(
    app: &Arc<AppState>,
    ticket: &Ticket,
    invocation: Invocation,
) -> Result<bool, StoreError> {
    let arrival = Arrival::of(app.engine.clock.instant(), invocation);
    match app.engine.start(ticket, arrival.invocation.deadline).await {
        Ok(started) => exchange::perform(app, started, arrival).await,
        Err(NotStarted::TooLate) => {}
        Err(NotStarted::Unknown) => return Ok(false),
        Err(NotStarted::Undecided(error)) => return Err(error),
    }
    Ok(true)
}
