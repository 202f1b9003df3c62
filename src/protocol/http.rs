//! The driver: an HTTP request through credentials, decoding and the engine, and back.
//!
//! What all protocols have in common is done here, once: the log line, credentials, size limits,
//! replay and retry headers. A protocol says which routes it has and how its bytes are read and
//! written.

use crate::tool::reason::Reason;
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
    routing::{get, post},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    request::Parts,
};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::{
    codec::{Codec, DecodedRequest, EncodedRequest, Operation, Task},
    json::most_values,
    wording::Wording,
};
#[cfg(feature = "oauth")]
use crate::ServerInfo;
use crate::{
    Caller, Failure,
    arrival::Arrival,
    call::{
        Call, DEFAULT_TIMEOUT, Engine, Outcome,
        large_requests::{LARGE, LargeRequestPermit},
        rejection::Rejection,
    },
    clock::Clock,
    observe::request_log::{CallSummary, Observer, RequestLog},
    payload::size_as_sent,
};

/// Says that an answer is an earlier one's.
pub(super) const REPLAY: HeaderName = HeaderName::from_static("idempotent-replay");

/// The headers of answers in every protocol that say something to clients.
pub(super) const ANSWER_HEADERS: &[&str] = &[
    "allow",
    "content-type",
    "idempotent-replay",
    "retry-after",
    "www-authenticate",
];

/// The longest secret or token that a call may bring, in bytes: each is looked for in many forms.
pub(super) const LONGEST_SECRET: usize = 16 * 1024;

/// What every request needs.
pub(crate) struct AppState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) observer: Arc<Observer>,
    /// By whose clock credentials are checked: never one that stands still for a recording.
    pub(crate) credential_clock: Clock,
    /// How many bytes a body may have.
    pub(crate) max_request_size: usize,
}

/// A request of somebody who may call, read.
#[derive(Clone)]
pub(super) struct AuthenticatedRequest {
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    pub(super) caller: Caller,
}

/// Adds the routes of a protocol.
pub(super) fn mount<P: Codec>(router: Router<Arc<AppState>>, protocol: P) -> Router<Arc<AppState>> {
    let protocol = Arc::new(protocol);
    P::DECLARATION.routes.iter().fold(router, |router, route| {
        let protocol = Arc::clone(&protocol);
        let handler = move |State(app): State<Arc<AppState>>, request: Request| {
            let protocol = Arc::clone(&protocol);
            async move {
                match route.task {
                    Task::Health => open(&app, &*protocol, route.task, request),
                    task => Exchange::serve(app, protocol, task, request).await,
                }
            }
        };
        let handler = if route.method == Method::POST {
            post(handler)
        } else {
            get(handler)
        };
        router.route(route.path, handler)
    })
}

/// A route without credentials.
fn open<P: Codec>(app: &AppState, protocol: &P, task: Task, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let decoded = protocol.decode(
        task,
        &EncodedRequest {
            parts: &parts,
            body: &[],
            engine: &app.engine,
            most_values: 0,
        },
    );
    match decoded.asked {
        Operation::Answer(status, body) => reply::<P>(status, body.into()),
        // A mistake of the protocol's.
        _ => reply::<P>(StatusCode::INTERNAL_SERVER_ERROR, Body::empty()),
    }
}

/// One request and its answer.
struct Exchange<P> {
    app: Arc<AppState>,
    protocol: Arc<P>,
    arrival: Arrival,
    log: RequestLog,
}

impl<P: Codec> Exchange<P> {
    async fn serve(app: Arc<AppState>, protocol: Arc<P>, task: Task, request: Request) -> Response {
        let arrival = Arrival::new(app.engine.clock.instant(), request.extensions());
        let headers = request.headers();
        let log = RequestLog::begin(
            &app.observer,
            arrival.clone(),
            headers,
            task.name(),
            task.span(),
        );
        let admitted = app.admit(request, &arrival).await;
        let mut exchange = Self {
            app,
            protocol,
            arrival,
            log,
        };
        match admitted {
            Ok(admitted) => exchange.admitted(task, admitted).await,
            Err(rejection) => exchange.rejected(&P::Form::default(), &rejection),
        }
    }

    async fn admitted(&mut self, task: Task, admitted: AuthenticatedRequest) -> Response {
        let (decoded, turn) = match self.decoded(task, &admitted).await {
            Ok(decoded) => decoded,
            Err(rejection) => return self.rejected(&P::Form::default(), &rejection),
        };
        let DecodedRequest { form, asked } = decoded;
        self.log.named(P::dialect(&form), &admitted.caller);
        match asked {
            Operation::Call(mut call) => {
                call.turn = turn;
                self.call(&form, call, admitted).await
            }
            Operation::List => self.listed(&form),
            Operation::Answer(status, body) => {
                self.log.discard();
                reply::<P>(status, body.into())
            }
            Operation::Refused(rejection, names) => {
                self.log.note(&admitted.parts.headers, &names);
                self.rejected(&form, &rejection)
            }
        }
    }

    /// Decodes a request, a large one beside the workers and in its turn.
    async fn decoded(
        &self,
        task: Task,
        admitted: &AuthenticatedRequest,
    ) -> Result<(DecodedRequest<P::Form>, Option<LargeRequestPermit>), Rejection> {
        let engine = &self.app.engine;
        let most_values = most_values(self.app.max_request_size);
        let decode = move |protocol: &P, admitted: &AuthenticatedRequest, engine: &Engine| {
            let request = EncodedRequest {
                parts: &admitted.parts,
                body: &admitted.body,
                engine,
                most_values,
            };
            protocol.decode(task, &request)
        };
        if admitted.body.len() <= LARGE {
            return Ok((decode(&self.protocol, admitted, engine), None));
        }
        let left = || {
            let left = self.arrival.invocation.time_left(engine.clock.now());
            left.unwrap_or(DEFAULT_TIMEOUT)
        };
        let turn = engine.large_requests.turn(left()).await?;
        let (protocol, engine) = (Arc::clone(&self.protocol), Arc::clone(engine));
        let admitted = admitted.clone();
        let decoding = move || decode(&protocol, &admitted, &engine);
        let (decoded, turn) = turn.work(left(), decoding).await?;
        Ok((decoded, Some(turn)))
    }

    async fn call(
        &mut self,
        form: &P::Form,
        call: Box<Call>,
        admitted: AuthenticatedRequest,
    ) -> Response {
        self.log
            .traced(&admitted.parts.headers, call.trace_id.as_deref());
        let (engine, arrival) = (&self.app.engine, self.arrival.clone());
        let trail = &mut self.log.trail;
        let called = engine.call(call, arrival, admitted.caller, trail).await;
        match called {
            Ok(outcome) => self.outcome(form, outcome),
            Err(rejection) => self.rejected(form, &rejection),
        }
    }

    /// What is too large to send becomes a failure.
    fn outcome(&mut self, form: &P::Form, mut outcome: Outcome) -> Response {
        let largest = self.arrival.invocation.largest_answer;
        let mut body = self.protocol.outcome(form, &outcome);
        let size = size_as_sent(&body);
        if size > largest {
            let failure =
                Failure::internal(Reason::TooLarge, "The tool's result is too large to send");
            outcome.result = Err(failure.developer_message(format!(
                "The answer would be {size} bytes; at most {largest} can be sent."
            )));
            body = self.protocol.outcome(form, &outcome);
        }
        self.log.answered(&CallSummary {
            duration: outcome.has_run.then_some(outcome.duration),
            failure: outcome.result.as_ref().err(),
            is_replay: outcome.is_replay,
        });
        let mut response = reply::<P>(StatusCode::OK, body.into());
        if outcome.is_replay {
            let headers = response.headers_mut();
            headers.insert(REPLAY, HeaderValue::from_static("true"));
        }
        response
    }

    fn listed(&mut self, form: &P::Form) -> Response {
        let too_large;
        let largest = self.arrival.invocation.largest_answer;
        let detail = match self.protocol.list(form, &self.app.engine.toolkit) {
            Ok(body) if size_as_sent(body) <= largest => {
                self.log.listed(None);
                return reply::<P>(StatusCode::OK, body.clone().into());
            }
            Ok(_) => {
                too_large = format!(
                    "The {} is larger than what lies in front of this function can send.",
                    P::DECLARATION.list
                );
                &too_large
            }
            Err(detail) => detail,
        };
        let (status, body) = self.protocol.unlisted(detail);
        self.log.listed(Some(detail));
        reply::<P>(status, body.into())
    }

    fn rejected(&mut self, form: &P::Form, rejection: &Rejection) -> Response {
        rejected(&*self.protocol, form, rejection, &mut self.log)
    }
}

/// Checks the credentials of a request that is no protocol's; who is refused is told so in this one.
#[cfg(feature = "oauth")]
pub(super) async fn checked<P: Codec>(app: &AppState, request: Request) -> Result<(), Response> {
    let arrival = Arrival::new(app.engine.clock.instant(), request.extensions());
    let headers = request.headers();
    let mut log = RequestLog::begin(&app.observer, arrival.clone(), headers, "check", None);
    match app.admit(request, &arrival).await {
        Ok(_) => {
            log.discard();
            Ok(())
        }
        Err(rejection) => {
            let protocol = P::new(&ServerInfo::default());
            Err(rejected(
                &protocol,
                &P::Form::default(),
                &rejection,
                &mut log,
            ))
        }
    }
}

fn rejected<P: Codec>(
    protocol: &P,
    form: &P::Form,
    rejection: &Rejection,
    log: &mut RequestLog,
) -> Response {
    let detail = match rejection {
        Rejection::Unauthenticated(why) => (*why).to_owned(),
        other => Wording::of(other).into_detail(),
    };
    let errors = match rejection {
        Rejection::InvalidInput(errors) => Some(errors),
        _ => None,
    };
    log.rejected(rejection.reason(), &detail, errors);
    let (status, body) = protocol.rejection(form, rejection);
    let mut response = reply::<P>(status, body.into());
    let headers = response.headers_mut();
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if rejection.is_temporary() {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        insert(headers, P::DECLARATION.retry_headers);
    }
    response
}

/// An answer in JSON, with what every answer of the protocol says.
pub(super) fn reply<P: Codec>(status: StatusCode, body: Body) -> Response {
    let mut response = json_response(status, body);
    insert(response.headers_mut(), P::DECLARATION.fixed_headers);
    response
}

pub(super) fn json_response(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn insert(headers: &mut HeaderMap, declared: &'static [(&'static str, &'static str)]) {
    for (name, value) in declared {
        headers.insert(*name, HeaderValue::from_static(value));
    }
}

impl AppState {
    /// Authenticates a request, then reads its body.
    pub(super) async fn admit(
        &self,
        request: Request,
        arrival: &Arrival,
    ) -> Result<AuthenticatedRequest, Rejection> {
        let caller = self.caller_of(request.headers(), arrival).await?;
        let (parts, body) = request.into_parts();
        Ok(AuthenticatedRequest {
            parts,
            body: read(body, self.max_request_size).await?,
            caller,
        })
    }

    async fn caller_of(&self, headers: &HeaderMap, arrival: &Arrival) -> Result<Caller, Rejection> {
        let now: SystemTime = self.credential_clock.now();
        let left: Option<Duration> = arrival.invocation.time_left(now);
        let engine = &self.engine;
        let checked = engine.auth.check(headers, &engine.secrets, now, left);
        Ok(match checked.await? {
            // Nothing is asked for here: whom the platform has let through is known to it.
            Caller::Anyone => arrival.invocation.caller.clone().unwrap_or(Caller::Anyone),
            known => known,
        })
    }
}

async fn read(body: Body, largest: usize) -> Result<Bytes, Rejection> {
    match Limited::new(body, largest).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Rejection::malformed(
            "The request is too large",
            format!("The body has more than {largest} bytes, the most that this server takes."),
        )),
        Err(error) => Err(Rejection::malformed(
            "The request did not arrive whole",
            error.to_string(),
        )),
    }
}
