//! The driver of calls by themselves: admits an event, and returns the body of its response.
//!
//! No HTTP request carries such a call: it has no route, and its answer is a body alone. The headers
//! and the credentials of a client are there only if its invoker passes them on.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, request::Parts};
use http_body_util::{BodyExt, Collected};

use super::{
    admission::{AppState, AuthenticatedRequest},
    codec::{Codec, Purpose},
    exchange::Exchange,
    refusal::Refusal,
};
use crate::{
    Caller,
    arrival::{Arrival, Invocation},
    auth::AuthError,
};

/// An event that is a call by itself, and what its invoker sent besides it.
pub(crate) struct EventCall {
    pub(crate) request: Request<Bytes>,
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

/// Answers an event. `span` is the name of its span, and `undecoded` the format of the answer to one
/// that is not admitted.
pub(super) async fn answer<P: Codec>(
    app: &Arc<AppState>,
    protocol: P,
    span: &'static str,
    call: EventCall,
    undecoded: &P::Format,
) -> Bytes {
    let arrival = Arrival {
        at: app.engine.clock.instant(),
        invocation: Arc::new(call.invocation),
    };
    let (parts, body) = call.request.into_parts();
    let (protocol, purpose) = (Arc::new(protocol), Purpose::Event(span));
    let exchange = Exchange::begin(app, protocol, &arrival, &parts.headers, purpose);
    let admitted = admit(app, parts, body, call.admission, &arrival).await;
    let response = exchange.respond(purpose, admitted, undecoded).await;
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
