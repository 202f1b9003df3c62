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
};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::{About, json::most_values, wording::Wording};
use crate::{
    Caller, Failure, Toolkit,
    arrival::Arrival,
    call::{
        Call, DEFAULT_TIMEOUT, Engine, Outcome,
        heavy::{LARGE, Turn},
        rejection::Rejection,
    },
    clock::Host,
    observe::request_log::{Answered, Names, Observer, RequestLog},
    payload::size_as_sent,
};

/// Says that an answer is an earlier one's.
const REPLAY: HeaderName = HeaderName::from_static("idempotent-replay");

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
pub(crate) struct App {
    pub(crate) engine: Arc<Engine>,
    pub(crate) observer: Arc<Observer>,
    /// By whose clock credentials are checked: never one that stands still for a recording.
    pub(crate) guard: Host,
    /// How many bytes a body may have.
    pub(crate) largest_request: usize,
}

/// A protocol's own part: from bytes to what is asked for, and back.
pub(super) trait Codec: Sized + Send + Sync + 'static {
    const DECLARED: &'static Declared;

    /// What an answer has to know of its request: its dialect, its id. The default is that of a
    /// request that was not read.
    type Form: Default + Send + Sync + 'static;

    fn new(about: &About) -> Self;

    /// Reads a request, large or small, whatever is wrong with it.
    fn decode(&self, task: Task, request: &Incoming<'_>) -> Decoded<Self::Form>;

    /// What the log calls the form.
    fn dialect(form: &Self::Form) -> &'static str;

    /// The list of tools, or why it cannot be had.
    fn list(&self, form: &Self::Form, toolkit: &Toolkit) -> Result<&Bytes, &str>;

    /// The answer where the list cannot be had, or is too large.
    fn unlisted(&self, detail: &str) -> (StatusCode, Vec<u8>);

    /// The body of a 200.
    fn outcome(&self, form: &Self::Form, outcome: &Outcome) -> Vec<u8>;

    fn rejection(&self, form: &Self::Form, rejection: &Rejection) -> (StatusCode, Vec<u8>);
}

/// What a protocol says of itself.
pub(super) struct Declared {
    /// What the list of all routes calls it; the one at the root needs no name.
    pub(super) title: Option<&'static str>,
    pub(super) routes: &'static [Route],
    /// What the protocol calls its list of tools.
    pub(super) list: &'static str,
    /// The headers of its requests whose values are no secrets.
    pub(super) request_headers: &'static [&'static str],
    /// The headers of its answers, besides those of all protocols, that say something to clients.
    pub(super) answer_headers: &'static [&'static str],
    /// Those that are on every answer.
    pub(super) fixed_headers: &'static [(&'static str, &'static str)],
    /// Those that are on rejections after which the same call may be taken in a moment, besides
    /// `Retry-After`.
    pub(super) retry_headers: &'static [(&'static str, &'static str)],
    /// Where calls bring tokens and secrets: a JSON pointer to a list, and the field of its items.
    pub(super) secrets: &'static [(&'static str, &'static str)],
}

/// One route of a protocol.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) task: Task,
    /// Whether it is another path of the same, which is not advertised.
    pub(super) is_alias: bool,
}

/// What a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Open to everybody, and not logged.
    Health,
    /// For callers, and logged only where it is refused.
    Version,
    /// With what the log calls it.
    List(&'static str),
    /// With the name of the request's span.
    Call(&'static str),
}

impl Task {
    /// What the log calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Version => "version",
            Self::List(name) => name,
            Self::Call(_) => "call",
        }
    }

    fn span(self) -> Option<&'static str> {
        match self {
            Self::Call(span) => Some(span),
            _ => None,
        }
    }
}

/// A request to be decoded.
pub(super) struct Incoming<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) engine: &'a Engine,
    /// How many JSON values the body may have.
    pub(super) most_values: usize,
}

/// A request as far as it could be read.
pub(super) struct Decoded<F> {
    pub(super) form: F,
    pub(super) asked: Asked,
}

/// What a request asks for.
pub(super) enum Asked {
    Call(Box<Call>),
    List,
    /// What needs no engine.
    Answer(StatusCode, Vec<u8>),
    /// What is wrong with it, and what it calls what it asks for.
    Refused(Rejection, Names),
}

/// A request of somebody who may call, read.
pub(super) struct Admitted {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) caller: Caller,
}

/// Adds the routes of a protocol.
pub(super) fn mount<P: Codec>(router: Router<Arc<App>>, protocol: P) -> Router<Arc<App>> {
    let protocol = Arc::new(protocol);
    P::DECLARED.routes.iter().fold(router, |router, route| {
        let protocol = Arc::clone(&protocol);
        let handler = move |State(app): State<Arc<App>>, request: Request| {
            let protocol = Arc::clone(&protocol);
            async move {
                match route.task {
                    Task::Health => open(&app, &*protocol, route.task),
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
fn open<P: Codec>(app: &App, protocol: &P, task: Task) -> Response {
    let decoded = protocol.decode(
        task,
        &Incoming {
            headers: &HeaderMap::new(),
            body: &[],
            engine: &app.engine,
            most_values: 0,
        },
    );
    match decoded.asked {
        Asked::Answer(status, body) => reply::<P>(status, body.into()),
        _ => unreachable!("an open route needs no engine"),
    }
}

/// One request and its answer.
struct Exchange<P> {
    app: Arc<App>,
    protocol: Arc<P>,
    arrival: Arrival,
    log: RequestLog,
}

impl<P: Codec> Exchange<P> {
    async fn serve(app: Arc<App>, protocol: Arc<P>, task: Task, request: Request) -> Response {
        let arrival = Arrival::new(app.engine.host.instant(), request.extensions());
        let headers = request.headers();
        let log = RequestLog::begin(
            &app.observer,
            arrival.clone(),
            headers,
            task.name(),
            task.span(),
        );
        let admitted = app.admit(request, &arrival).await;
        let exchange = Self {
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

    async fn admitted(mut self, task: Task, admitted: Admitted) -> Response {
        let (decoded, turn) = match self.decoded(task, &admitted).await {
            Ok(decoded) => decoded,
            Err(rejection) => return self.rejected(&P::Form::default(), &rejection),
        };
        let Decoded { form, asked } = decoded;
        self.log.named(P::dialect(&form), &admitted.caller);
        match asked {
            Asked::Call(call) => self.call(&form, Call { turn, ..*call }, admitted).await,
            Asked::List => self.listed(&form),
            Asked::Answer(status, body) => {
                self.log.discard();
                reply::<P>(status, body.into())
            }
            Asked::Refused(rejection, names) => {
                self.log.note(&admitted.headers, &names);
                self.rejected(&form, &rejection)
            }
        }
    }

    /// Decodes a request, a large one beside the workers and in its turn.
    async fn decoded(
        &self,
        task: Task,
        admitted: &Admitted,
    ) -> Result<(Decoded<P::Form>, Option<Turn>), Rejection> {
        let engine = &self.app.engine;
        let most_values = most_values(self.app.largest_request);
        let decode = move |protocol: &P, headers: &HeaderMap, body: &[u8], engine: &Engine| {
            let request = Incoming {
                headers,
                body,
                engine,
                most_values,
            };
            protocol.decode(task, &request)
        };
        let (headers, body) = (&admitted.headers, &admitted.body);
        if body.len() <= LARGE {
            return Ok((decode(&self.protocol, headers, body, engine), None));
        }
        let left = || {
            let left = self.arrival.invocation.time_left(engine.host.now());
            left.unwrap_or(DEFAULT_TIMEOUT)
        };
        let turn = engine.heavy.turn(left()).await?;
        let (protocol, engine) = (Arc::clone(&self.protocol), Arc::clone(engine));
        let (headers, body) = (headers.clone(), body.clone());
        let decoding = move || decode(&protocol, &headers, &body, &engine);
        let (decoded, turn) = turn.work(left(), decoding).await?;
        Ok((decoded, Some(turn)))
    }

    async fn call(mut self, form: &P::Form, call: Call, admitted: Admitted) -> Response {
        self.log.traced(&admitted.headers, call.trace_id.as_deref());
        let (engine, arrival) = (&self.app.engine, self.arrival.clone());
        let trail = &mut self.log.trail;
        let called = engine.call(call, arrival, admitted.caller, trail).await;
        match called {
            Ok(outcome) => self.outcome(form, outcome),
            Err(rejection) => self.rejected(form, &rejection),
        }
    }

    /// What is too large to send becomes a failure.
    fn outcome(self, form: &P::Form, mut outcome: Outcome) -> Response {
        let largest = self.arrival.invocation.largest_answer;
        let mut body = self.protocol.outcome(form, &outcome);
        let size = size_as_sent(&body);
        if size > largest {
            let failure =
                Failure::of_ours(Reason::TooLarge, "The tool's result is too large to send");
            outcome.result = Err(failure.developer_message(format!(
                "The answer would be {size} bytes; at most {largest} can be sent."
            )));
            body = self.protocol.outcome(form, &outcome);
        }
        self.log.answered(&Answered {
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

    fn listed(self, form: &P::Form) -> Response {
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
                    P::DECLARED.list
                );
                &too_large
            }
            Err(detail) => detail,
        };
        let (status, body) = self.protocol.unlisted(detail);
        self.log.listed(Some(detail));
        reply::<P>(status, body.into())
    }

    fn rejected(self, form: &P::Form, rejection: &Rejection) -> Response {
        rejected(&*self.protocol, form, rejection, self.log)
    }
}

/// Checks the credentials of a request that is no protocol's; who is refused is told so in this one.
#[cfg(feature = "oauth")]
pub(super) async fn checked<P: Codec>(app: &App, request: Request) -> Result<(), Response> {
    let arrival = Arrival::new(app.engine.host.instant(), request.extensions());
    let headers = request.headers();
    let log = RequestLog::begin(&app.observer, arrival.clone(), headers, "check", None);
    match app.admit(request, &arrival).await {
        Ok(_) => {
            log.discard();
            Ok(())
        }
        Err(rejection) => {
            let protocol = P::new(&About::default());
            Err(rejected(&protocol, &P::Form::default(), &rejection, log))
        }
    }
}

fn rejected<P: Codec>(
    protocol: &P,
    form: &P::Form,
    rejection: &Rejection,
    log: RequestLog,
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
        insert(headers, P::DECLARED.retry_headers);
    }
    response
}

/// An answer in JSON, with what every answer of the protocol says.
pub(super) fn reply<P: Codec>(status: StatusCode, body: Body) -> Response {
    let mut response = json_response(status, body);
    insert(response.headers_mut(), P::DECLARED.fixed_headers);
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

impl App {
    /// Authenticates a request, then reads its body.
    pub(super) async fn admit(
        &self,
        request: Request,
        arrival: &Arrival,
    ) -> Result<Admitted, Rejection> {
        let caller = self.caller_of(request.headers(), arrival).await?;
        let (parts, body) = request.into_parts();
        Ok(Admitted {
            headers: parts.headers,
            body: read(body, self.largest_request).await?,
            caller,
        })
    }

    async fn caller_of(&self, headers: &HeaderMap, arrival: &Arrival) -> Result<Caller, Rejection> {
        let now: SystemTime = self.guard.now();
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
