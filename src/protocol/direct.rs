//! The driver of calls by themselves: passes an event through decoding and the engine, and returns
//! its answer.
//!
//! No HTTP request carries such a call: it has no route, and its answer is a body alone. The headers
//! and the credentials of a client are there only if its invoker passes them on.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::value::RawValue;

use super::{
    First,
    admission::AppState,
    codec::EncodedRequest,
    http::log_refusal,
    json::{max_values, repaired},
    refusal::Refusal,
};
use crate::{
    Caller,
    arrival::{Arrival, Invocation},
    auth::AuthError,
    call::{Call, Outcome},
    observe::request_log::{RequestLog, RequestNames},
    payload::{LARGEST_PAYLOAD, encoded_size, fits},
};

/// The format of calls by themselves, for one kind of invoker.
///
/// The value holds what is known of one event: what its invoker sent besides it, and, once the
/// event is decoded, the properties that its answer depends on.
///
/// The driver takes any format as a trait object: a second copy of it would make binaries larger.
pub(crate) trait CallFormat: Send + Sync {
    /// Returns the name of the request's span.
    fn span(&self) -> &'static str;

    /// Decodes an event, which may be of any size and may be invalid.
    fn decode(&mut self, event: &EncodedRequest<'_>) -> Result<Box<Call>, Refusal>;

    /// Returns the names in an event that is refused, for the log.
    fn names(&self, event: &[u8]) -> RequestNames;

    /// Returns the name of the format in the log.
    fn dialect(&self) -> &'static str;

    fn outcome(&self, outcome: &Outcome) -> Box<RawValue>;

    fn refusal(&self, refusal: &Refusal) -> Box<RawValue>;
}

/// An event that is a call by itself, and what its invoker sent besides it.
pub(crate) struct EventCall<'a> {
    pub(crate) format: Box<dyn CallFormat>,
    pub(crate) event: &'a str,
    pub(crate) headers: HeaderMap,
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

/// Answers an event.
pub(crate) async fn answer(app: &Arc<AppState>, given: EventCall<'_>) -> Box<RawValue> {
    let (mut format, sent) = (given.format, (given.event, given.headers));
    let arrival = Arrival {
        at: app.engine.clock.instant(),
        invocation: Arc::new(given.invocation),
    };
    let span = Some(format.span());
    let mut log = RequestLog::begin(&app.observer, arrival.clone(), &sent.1, "call", span);
    match call(app, &mut format, &sent, given.admission, &arrival, &mut log).await {
        Ok(mut outcome) => {
            let largest = arrival.invocation.max_response_size;
            let mut body = format.outcome(&outcome);
            if !fits(body.get().as_bytes(), largest) {
                outcome.replace_too_large(encoded_size(body.get().as_bytes()), largest);
                body = format.outcome(&outcome);
            }
            log.write_call(&outcome.summary());
            body
        }
        Err(refusal) => {
            let refusal = app.with_sign_in::<First>(refusal, None);
            log_refusal(&refusal, &mut log);
            // It always fits: it has at most a hundred messages, with names of limited length.
            format.refusal(&refusal)
        }
    }
}

/// Passes an event through admission, decoding and the engine.
async fn call(
    app: &Arc<AppState>,
    format: &mut Box<dyn CallFormat>,
    (event, headers): &(&str, HeaderMap),
    admission: Admission,
    arrival: &Arrival,
    log: &mut RequestLog,
) -> Result<Outcome, Refusal> {
    let caller = match admission {
        Admission::Admitted(caller) => caller,
        Admission::Credentials(_) if !app.engine.auth.reads_headers() => {
            return Err(AuthError::missing("the server checks no tokens").into());
        }
        Admission::Credentials(credentials) => app.caller_of(&credentials, arrival).await?,
    };
    let largest = app.max_request_size;
    if event.len() > largest {
        return Err(Refusal::TooLarge { largest });
    }
    let room = app.room_for(event.len(), arrival).await?;
    let encoded = EncodedRequest {
        headers,
        uri: None,
        body: event.as_bytes(),
        engine: &app.engine,
        caller: &caller,
        names: &app.names,
        max_values: max_values(largest),
        max_response_size: LARGEST_PAYLOAD,
    };
    let mut decoded = format.decode(&encoded);
    if decoded.is_err()
        && let Some(body) = &repaired(event.as_bytes())
    {
        decoded = format.decode(&EncodedRequest { body, ..encoded });
    }
    log.set_caller(format.dialect(), &caller);
    if decoded.is_err() {
        log.set_names(headers, &format.names(event.as_bytes()));
    }
    let mut call = decoded?;
    call.room = room;
    if let Some(name) = call.trace_id.as_deref() {
        log.set_trace(headers, Some(name));
    }
    let trail = &mut log.trail;
    let outcome = app.engine.call(call, arrival.clone(), caller, trail).await;
    Ok(outcome?)
}
