//! The exchange of one request and its response, below the drivers: decoding, the engine, encoding
//! and the log line.
//!
//! A driver finds out what there is to admit. Everything after that is here, and the same for all
//! protocols: size limits, the headers for replays and retries, and responses that are streams.

use std::sync::Arc;

use axum::response::Response;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT_ENCODING, RETRY_AFTER, WWW_AUTHENTICATE},
};

use super::{
    admission::AuthenticatedRequest,
    app::AppState,
    body::streamed,
    codec::{Codec, EncodedRequest, Operation, Purpose, TaskRequest, reply, streamed_reply},
    json::{max_values, repaired},
    json_response::insert,
    refusal::{LONGEST_RETRY, Refusal},
    sign_in::{sign_in, www_authenticate},
    wording::Wording,
};
use crate::{
    Caller, StoreError,
    arrival::{Arrival, Invocation, encoded_size, fits},
    call::{Call, Outcome, background::Ticket, rejection::Rejection},
    idempotency::deduplication::task::NotStarted,
    observe::request_log::RequestLog,
    quotas::ExceededQuota,
    tool::reason::Reason,
    wire,
};

/// The response headers that clients read, common to all protocols.
pub(super) const RESPONSE_HEADERS: &[&str] = &[
    "allow",
    "content-type",
    "etag",
    wire::REPLAY,
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "www-authenticate",
];

/// One request and its response.
pub(super) struct Exchange<P> {
    app: Arc<AppState>,
    protocol: Arc<P>,
    arrival: Arrival,
    log: RequestLog,
    purpose: Purpose,
}

impl<P: Codec> Exchange<P> {
    pub(super) fn begin(
        app: &Arc<AppState>,
        protocol: Arc<P>,
        arrival: &Arrival,
        headers: &HeaderMap,
        purpose: Purpose,
    ) -> Self {
        let (name, span) = (purpose.name(), purpose.span());
        Self {
            log: RequestLog::begin(&app.observer, arrival.clone(), headers, name, span),
            app: Arc::clone(app),
            protocol,
            arrival: arrival.clone(),
            purpose,
        }
    }

    /// Responds to a request that has been admitted, or refuses it in the format of a request that
    /// was not decoded.
    pub(super) async fn respond(
        mut self,
        admitted: Result<AuthenticatedRequest, Refusal>,
    ) -> Response {
        let mut request = match admitted {
            Ok(request) => request,
            Err(refusal) => return self.refuse(&P::undecoded(self.purpose), refusal),
        };
        let (mut format, operation) = self.decode(&request);
        self.log.set_caller(P::dialect(&format), &request.caller);
        if let Some(headers) = P::trace_headers(&format) {
            self.log.set_trace(headers, None);
        }
        match operation {
            Operation::Call(mut call) => {
                call.room = request.room.take();
                if let Some(span) = self.log.trail.span().filter(|it| !it.is_disabled()) {
                    P::annotate(&format, &call, &self.app, span);
                }
                let chunks = self.arrival.invocation.streams;
                let chunks = chunks.then(|| P::early_chunks(&mut format, &mut call));
                let response = async move { self.call(&format, call, request).await };
                let Some(chunks) = chunks.flatten() else {
                    return response.await;
                };
                streamed(chunks, Box::pin(response), streamed_reply::<P>).await
            }
            Operation::List => {
                self.log.set_list();
                self.list(&format, &request)
            }
            Operation::Respond(status, body) => {
                self.log.discard();
                reply::<P>(status, body)
            }
            Operation::Task(it) => self.task(it, &request.caller).await,
            Operation::Refuse(it) => {
                self.log.set_names(&request.parts.headers, &it.names);
                self.log
                    .write_rejection(Reason::Malformed, &it.detail, None);
                reply::<P>(it.status, it.body)
            }
            Operation::Reject(refusal, names) => {
                self.log.set_names(&request.parts.headers, &names);
                self.refuse(&format, refusal)
            }
        }
    }

    /// Decodes a request. A body that serde refuses, but other readers may take, is repaired only if it
    /// would be refused.
    fn decode(&self, request: &AuthenticatedRequest) -> (P::Format, Operation) {
        let app = &self.app;
        let decode = |body: &[u8]| {
            let encoded = EncodedRequest {
                headers: &request.parts.headers,
                uri: &request.parts.uri,
                body,
                app,
                caller: &request.caller,
                max_values: max_values(app.max_request_size),
            };
            let mut format = P::undecoded(self.purpose);
            let operation = self.protocol.decode(self.purpose, &encoded, &mut format);
            (format, operation)
        };
        let decoded = decode(&request.body);
        let body = match decoded.1 {
            Operation::Refuse(_) | Operation::Reject(..) => repaired(&request.body),
            _ => None,
        };
        body.map_or(decoded, |body| decode(&body))
    }

    async fn call(
        &mut self,
        format: &P::Format,
        mut call: Box<Call>,
        request: AuthenticatedRequest,
    ) -> Response {
        if let Some(name) = call.trace_id.as_deref() {
            self.log.set_trace(&request.parts.headers, Some(name));
        }
        let (engine, arrival) = (&self.app.engine, self.arrival.clone());
        engine.take_secrets(&mut call, &request.parts.headers);
        let trail = &mut self.log.trail;
        match engine.call(call, arrival, request.caller, trail).await {
            Ok(outcome) => self.outcome(format, outcome),
            Err(rejection) => self.refuse(format, rejection.into()),
        }
    }

    /// Encodes an outcome. An output that is too large to send becomes a failure.
    fn outcome(&mut self, format: &P::Format, mut outcome: Outcome) -> Response {
        let largest = self.arrival.invocation.max_response_size();
        let (mut status, mut body) = self.protocol.outcome(format, &outcome);
        if !fits(&body, largest) {
            outcome.replace_too_large(encoded_size(&body), largest);
            (status, body) = self.protocol.outcome(format, &outcome);
        }
        self.log.write_call(&outcome.summary());
        let mut response = reply::<P>(status, body);
        if outcome.is_replay {
            let headers = response.headers_mut();
            headers.insert(wire::REPLAY, HeaderValue::from_static("true"));
        }
        response
    }

    fn list(&mut self, format: &P::Format, request: &AuthenticatedRequest) -> Response {
        let invocation = &self.arrival.invocation;
        let url = self.app.public_url.resolve(invocation.base_url.as_deref());
        let tools = self.app.listed_tools(Some(&request.caller), url.as_deref());
        let list = self.protocol.list(format, &tools);
        if let Some(mut response) = list.response(&request.parts, invocation.max_response_size()) {
            insert(response.headers_mut(), P::DECLARATION.fixed_headers);
            insert(response.headers_mut(), P::DECLARATION.list_headers);
            self.log.write_list(None);
            return response;
        }
        let detail = "The list of tools is larger than the event source of this function can send.";
        let (status, body) = self.protocol.list_error(format, detail);
        self.log.write_list(Some(detail));
        reply::<P>(status, body)
    }

    async fn task(&mut self, it: TaskRequest, caller: &Caller) -> Response {
        let engine = &self.app.engine;
        let found = engine.task(&it.id, caller, it.cancels).await;
        let tool = match &found {
            Ok(Some(task)) => Ok(engine.tool_of(task)),
            Ok(None) => Err((Reason::Malformed, "The caller has no such task.".into())),
            Err(error) => Err((Reason::Unprotected, error.to_string())),
        };
        self.log.write_task(it.name, tool);
        let largest = self.arrival.invocation.max_response_size();
        let (status, body) = (it.reply)(found, largest);
        reply::<P>(status, body)
    }

    fn refuse(&mut self, format: &P::Format, mut refusal: Refusal) -> Response {
        if let Refusal::Unauthenticated(_, hint)
        | Refusal::Rejected(Rejection::InsufficientScope { .. }, hint) = &mut refusal
        {
            let resource_path = match self.purpose {
                Purpose::Event(_) => "",
                _ => P::DECLARATION.resource_path,
            };
            let base = self.arrival.invocation.base_url.as_deref();
            *hint = sign_in(&self.app, base, resource_path);
        }
        log_refusal(&refusal, &mut self.log);
        response_to_refused(&*self.protocol, format, &refusal)
    }
}

/// Performs the task of a ticket, unless it has been started before. It was admitted when its call was
/// handed over, and is logged like any other call. Returns false if there is no such task.
pub(crate) async fn perform(
    app: &Arc<AppState>,
    ticket: &Ticket,
    invocation: Invocation,
) -> Result<bool, StoreError> {
    let arrival = Arrival::of(app.engine.clock.instant(), invocation);
    let started = match app.engine.start(ticket, arrival.invocation.deadline).await {
        Ok(started) => started,
        Err(NotStarted::TooLate) => return Ok(true),
        Err(NotStarted::Unknown) => return Ok(false),
        Err(NotStarted::Undecided(error)) => return Err(error),
    };
    let (headers, span) = (&started.headers, Some("task"));
    let mut log = RequestLog::begin(&app.observer, arrival.clone(), headers, "call", span);
    log.set_trace(headers, started.call.trace_id.as_deref());
    log.set_caller("task", &started.caller);
    let engine = &app.engine;
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

fn log_refusal(refusal: &Refusal, log: &mut RequestLog) {
    let detail = match refusal {
        Refusal::Unauthenticated(why, _) => why.reason.to_owned(),
        other => Wording::of(other).into_detail(),
    };
    let errors = match refusal {
        Refusal::Rejected(Rejection::InvalidInput(errors), _) => Some(errors),
        _ => None,
    };
    log.write_rejection(refusal.reason(), &detail, errors);
}

#[cfg(feature = "explorer")]
impl Exchange<super::First> {
    /// Admits a request that belongs to no protocol, or responds to it. `operation` is its name in the
    /// log, which has absent credentials only with `logs_absence`: a browser sends none when it opens a
    /// page.
    pub(super) async fn admit(
        app: &Arc<AppState>,
        request: axum::extract::Request,
        operation: &'static str,
        logs_absence: bool,
    ) -> Result<AuthenticatedRequest, Response> {
        let arrival = Arrival::new(app.engine.clock.instant(), request.extensions());
        let protocol = Arc::new(super::First::default());
        let (headers, purpose) = (request.headers(), Purpose::Fixed(operation));
        let mut exchange = Self::begin(app, protocol, &arrival, headers, purpose);
        let admitted = app.admit(request, &arrival, |_| false).await;
        let is_logged = |it: &Refusal| logs_absence || !it.lacks_credentials();
        if !admitted.as_ref().is_err_and(is_logged) {
            exchange.log.discard();
        }
        admitted.map_err(|refusal| exchange.refuse(&super::First::undecoded(purpose), refusal))
    }
}

fn response_to_refused<P: Codec>(protocol: &P, format: &P::Format, refusal: &Refusal) -> Response {
    let (status, body) = protocol.refusal(format, refusal);
    let mut response = reply::<P>(status, body);
    let headers = response.headers_mut();
    let is_about_credentials = matches!(
        refusal,
        Refusal::Unauthenticated(..) | Refusal::Rejected(Rejection::InsufficientScope { .. }, _)
    );
    if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status) && is_about_credentials {
        headers.insert(WWW_AUTHENTICATE, www_authenticate(refusal));
    }
    if matches!(refusal, Refusal::Encoded) {
        // RFC 9110, 12.5.3.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if let Some(seconds) = refusal.retry_after() {
        headers.insert(RETRY_AFTER, seconds.into());
        if seconds <= LONGEST_RETRY {
            insert(headers, P::DECLARATION.retry_headers);
        }
        if let Refusal::Rejected(Rejection::QuotaExceeded(quota), _) = refusal {
            insert_rate_limit(headers, quota, seconds);
        }
    }
    response
}

/// Adds what clients can read about a quota: draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4.
fn insert_rate_limit(headers: &mut HeaderMap, quota: &ExceededQuota, seconds: u64) {
    let (subject, limit) = (&quota.subject, quota.limit);
    let window = quota.window.as_secs();
    for (name, value) in [
        ("ratelimit", format!("\"{subject}\";r=0;t={seconds}")),
        (
            "ratelimit-policy",
            format!("\"{subject}\";q={limit};w={window}"),
        ),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
}
