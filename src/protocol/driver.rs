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
use http::{HeaderMap, Method, request::Parts};
use http_body_util::{BodyExt, Collected};

use super::{
    admission::AuthenticatedRequest,
    app::AppState,
    codec::{Codec, Purpose},
    cors::Reader,
    exchange::{Exchange, log_refusal},
    refusal::Refusal,
};
use crate::{
    Caller, StoreError,
    arrival::{Arrival, Invocation},
    auth::AuthError,
    call::background::Ticket,
    idempotency::deduplication::task::NotStarted,
    observe::request_log::RequestLog,
};

/// Adds the routes of a protocol.
pub(super) fn mount<P: Codec>(
    router: Router<Arc<AppState>>,
    protocol: P,
    has_openapi: bool,
) -> Router<Arc<AppState>> {
    let protocol = Arc::new(protocol);
    let routes = P::DECLARATION.routes(has_openapi);
    let all = routes.chain(P::DECLARATION.aliases);
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
    let base = arrival.invocation.base_url.as_deref();
    let exchange = Exchange::begin(&app, protocol, &arrival, request.headers(), purpose);
    let admitted = match purpose {
        Purpose::Health => Ok(AuthenticatedRequest::anonymous(request)),
        _ if !app.allows_origin(request.headers(), base) => Err(Refusal::ForbiddenOrigin),
        _ => app.admit(request, &arrival, P::is_health_check).await,
    };
    reader.share(exchange.respond(admitted).await)
}

/// An event that is a call by itself, and what its invoker sent besides it.
pub(crate) struct EventCall {
    pub(crate) request: http::Request<Bytes>,
    pub(crate) admission: Admission,
    pub(crate) invocation: Invocation,
}

/// The admission of an event's caller.
pub(crate) enum Admission {
    /// The platform has admitted this caller.
    Admitted(Caller),
    /// The server checks these credentials.
    Credentials(HeaderMap),
}

/// Answers an event. `span` is the name of its span.
pub(super) async fn answer<P: Codec>(
    app: &Arc<AppState>,
    protocol: P,
    span: &'static str,
    call: EventCall,
) -> Bytes {
    let arrival = Arrival {
        at: app.engine.clock.instant(),
        invocation: Arc::new(call.invocation),
    };
    let (parts, body) = call.request.into_parts();
    let (protocol, purpose) = (Arc::new(protocol), Purpose::Event(span));
    let exchange = Exchange::begin(app, protocol, &arrival, &parts.headers, purpose);
    let admitted = admit(app, parts, body, call.admission, &arrival).await;
    // Boxed because it is large, and each function around it would move it.
    let response = Box::pin(exchange.respond(admitted)).await;
    let body = response.into_body().collect().await;
    body.map(Collected::to_bytes).unwrap_or_default()
}

async fn admit(
    app: &AppState,
    parts: Parts,
    body: Bytes,
    admission: Admission,
    arrival: &Arrival,
) -> Result<AuthenticatedRequest, Refusal> {
    let caller = match admission {
        Admission::Admitted(caller) => caller,
        Admission::Credentials(_) if !app.engine.auth.reads_headers() => {
            return Err(AuthError::missing("the server checks no tokens").into());
        }
        Admission::Credentials(credentials) => app.caller_of(&credentials, arrival).await?,
    };
    let largest = app.max_request_size;
    if body.len() > largest {
        return Err(Refusal::TooLarge { largest });
    }
    Ok(AuthenticatedRequest {
        room: app.room_for(body.len(), arrival).await?,
        parts,
        body,
        caller,
    })
}

/// Performs the task of a ticket, unless it has been started before. Returns false if there is no such
/// task.
pub(crate) async fn perform(
    app: &Arc<AppState>,
    ticket: &Ticket,
    invocation: Invocation,
) -> Result<bool, StoreError> {
    let engine = &app.engine;
    let arrival = Arrival {
        at: engine.clock.instant(),
        invocation: Arc::new(invocation),
    };
    let started = match engine.start(ticket, arrival.invocation.deadline).await {
        Ok(started) => started,
        Err(NotStarted::TooLate) => return Ok(true),
        Err(NotStarted::Unknown) => return Ok(false),
        Err(NotStarted::Undecided(error)) => return Err(error),
    };
    let headers = &started.headers;
    let span = Some("task");
    let mut log = RequestLog::begin(&app.observer, arrival.clone(), headers, "call", span);
    log.set_trace(headers, started.call.trace_id.as_deref());
    log.set_caller("task", &started.caller);
    let called = engine.call(started.call, arrival, started.caller, &mut log.trail);
    match called.await {
        Ok(outcome) => log.write_call(&outcome.summary()),
        Err(rejection) => {
            let refusal = Refusal::from(rejection);
            log_refusal(&refusal, &mut log);
            engine.end_task(started.claim, refusal.into()).await;
        }
    }
    Ok(true)
}
