//! The driver of HTTP requests: routes a request to its protocol, and admits it.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::{get, post},
};
use http::Method;

use super::{
    admission::{AppState, AuthenticatedRequest},
    codec::{Codec, Purpose},
    exchange::Exchange,
    refusal::Refusal,
};
use crate::arrival::Arrival;

/// Adds the routes of a protocol.
pub(super) fn mount<P: Codec>(router: Router<Arc<AppState>>, protocol: P) -> Router<Arc<AppState>> {
    let protocol = Arc::new(protocol);
    P::DECLARATION.routes.iter().fold(router, |router, route| {
        let handler = |purpose: Purpose| {
            let protocol = Arc::clone(&protocol);
            move |State(app): State<Arc<AppState>>, request: Request| {
                serve(app, Arc::clone(&protocol), purpose, request)
            }
        };
        let served = if route.method == Method::POST {
            post(handler(route.purpose))
        } else {
            get(handler(route.purpose))
        };
        let served = match route.others {
            Some(purpose) => served.fallback(handler(purpose)),
            None => served,
        };
        router.route(route.path, served)
    })
}

async fn serve<P: Codec>(
    app: Arc<AppState>,
    protocol: Arc<P>,
    purpose: Purpose,
    request: Request,
) -> Response {
    let arrival = Arrival::new(app.engine.clock.instant(), request.extensions());
    let base = arrival.invocation.base_url.as_deref();
    let exchange = Exchange::begin(&app, protocol, &arrival, request.headers(), purpose);
    let admitted = match purpose {
        Purpose::Health => Ok(AuthenticatedRequest::anonymous(request)),
        _ if !app.allows_origin(request.headers(), base) => Err(Refusal::ForbiddenOrigin),
        _ => app.admit(request, &arrival, P::is_health_check).await,
    };
    exchange
        .respond(purpose, admitted, &P::Format::default())
        .await
}
