//! From (method, path) to an operation, and from what came of it to a response.
//!
//! The HTTP surface is one [`Router`], so that it can be layered, merged with routes of one's own
//! and tested without a socket. Only this module and its children know status codes.

#[cfg(feature = "oauth")]
mod challenges;
mod integers;
pub(crate) mod json;
pub(crate) mod opentool;
pub(crate) mod oxp;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
    routing::{get, post},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::{
    Auth, Caller, Toolkit,
    authorization::Desk,
    call::{
        Around, Call, DEFAULT_TIMEOUT, Outcome, Terms,
        arrival::{Arrival, Invocation},
        heavy::{Heavy, LARGE, Turn},
        rejection::Rejection,
    },
    clock::Host,
    idempotency::protection::Protection,
    observe::{metrics::Metrics, spans::Spans},
    secrets::SecretCache,
};

use crate::observe::request::Line;

/// Says that an answer is an earlier one's.
const REPLAY: HeaderName = HeaderName::from_static("idempotent-replay");

/// The longest secret or token that a call may bring, in bytes: each is looked for in many forms.
const LONGEST_SECRET: usize = 16 * 1024;

/// What every operation needs.
pub(crate) struct App {
    pub(crate) toolkit: Arc<Toolkit>,
    pub(crate) catalogue: oxp::Catalogue,
    /// Where OpenTool is served.
    pub(crate) opentool: Option<opentool::Document>,
    pub(crate) host: Host,
    /// By whose clock credentials are checked: never one that stands still for a recording.
    pub(crate) guard: Host,
    pub(crate) auth: Auth,
    pub(crate) secrets: Arc<SecretCache>,
    pub(crate) protection: Arc<Protection>,
    /// Where users allow tools to act for them.
    pub(crate) desk: Option<Arc<Desk>>,
    pub(crate) ready: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Where metrics are wanted.
    pub(crate) metrics: Option<Metrics>,
    /// Whether inputs and outputs are logged, which only the local server does.
    pub(crate) shows_calls: bool,
    /// How many bytes a body may have.
    pub(crate) largest_request: usize,
    pub(crate) heavy: Heavy,
}

type Shared = State<Arc<App>>;

/// OXP 1.0: `/health`, `/tools`, `/tools/call`; the specification's examples post to `/call`.
/// OpenTool: `/opentool/version`, `/opentool/load`, `/opentool/call`.
pub(crate) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/health", get(health))
        .route("/tools", get(tools))
        .route("/tools/call", post(call))
        .route("/call", post(call));
    if app.opentool.is_some() {
        router = router
            .route("/opentool/version", get(opentool_version))
            .route("/opentool/load", get(opentool_load))
            .route("/opentool/call", post(opentool_call));
    }
    #[cfg(feature = "oauth")]
    if app.desk.is_some() {
        router = challenges::routes(router);
    }
    let has_opentool = app.opentool.is_some();
    router
        .fallback(async move || oxp::not_found(has_opentool))
        .method_not_allowed_fallback(async || oxp::method_not_allowed())
        .with_state(app)
}

async fn health(State(app): Shared) -> Response {
    oxp::health(app.is_ready())
}

async fn tools(State(app): Shared, request: Request) -> Response {
    let line = Line::of(&app, &request, "list");
    match app.admit(request).await {
        Ok(admitted) => oxp::list(&app, &admitted, line),
        Err(rejection) => oxp::rejected(&rejection, line),
    }
}

async fn call(State(app): Shared, request: Request) -> Response {
    let line = Line::of_call(&app, &request, "POST /tools/call");
    match app.admit(request).await {
        Ok(admitted) => oxp::call(&app, admitted, line).await,
        Err(rejection) => oxp::rejected(&rejection, line),
    }
}

async fn opentool_version(State(app): Shared, request: Request) -> Response {
    let line = Line::of(&app, &request, "version");
    match app.admitted_to_opentool(request, line).await {
        Ok((document, _, line)) => {
            line.needless();
            opentool::version(document)
        }
        Err(response) => response,
    }
}

async fn opentool_load(State(app): Shared, request: Request) -> Response {
    let line = Line::of(&app, &request, "load");
    match app.admitted_to_opentool(request, line).await {
        Ok((document, admitted, line)) => opentool::load(&app, document, &admitted, line),
        Err(response) => response,
    }
}

async fn opentool_call(State(app): Shared, request: Request) -> Response {
    let line = Line::of_call(&app, &request, "POST /opentool/call");
    match app.admitted_to_opentool(request, line).await {
        Ok((_, admitted, line)) => opentool::call(&app, admitted, line).await,
        Err(response) => response,
    }
}

fn json_response(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// A request of somebody who may call, read.
pub(crate) struct Admitted {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) arrival: Arrival,
    pub(crate) caller: Caller,
}

async fn read(request: Request<Body>, largest: usize) -> Result<(Parts, Bytes), Rejection> {
    let (parts, body) = request.into_parts();
    match Limited::new(body, largest).collect().await {
        Ok(body) => Ok((parts, body.to_bytes())),
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

impl App {
    fn is_ready(&self) -> bool {
        self.ready.as_ref().is_none_or(|ready| ready())
    }

    /// Authenticates a request, then reads its body.
    async fn admit(&self, request: Request) -> Result<Admitted, Rejection> {
        let now = self.guard.now();
        let at = self.host.instant();
        let invocation = Invocation::of(request.extensions());
        let left = invocation.time_left(now);
        let auth = self.auth.check(request.headers(), &self.secrets, now, left);
        let caller = match auth.await? {
            // Nothing is asked for here: whom the platform has let through is known to it.
            Caller::Anyone => invocation.caller.clone().unwrap_or(Caller::Anyone),
            known => known,
        };
        let (parts, body) = read(request, self.largest_request).await?;
        Ok(Admitted {
            arrival: Arrival { at, invocation },
            headers: parts.headers,
            body,
            caller,
        })
    }

    async fn admitted_to_opentool(
        &self,
        request: Request,
        line: Line,
    ) -> Result<(&opentool::Document, Admitted, Line), Response> {
        let Some(document) = &self.opentool else {
            line.needless();
            return Err(oxp::not_found(false));
        };
        match self.admit(request).await {
            Ok(admitted) => Ok((document, admitted, line)),
            Err(rejection) => Err(opentool::rejected(rejection, line)),
        }
    }

    /// Decodes a body, a large one beside the workers and in its turn.
    async fn decoded<T: Send + 'static>(
        self: &Arc<Self>,
        admitted: &Admitted,
        decode: impl FnOnce(&Self, &HeaderMap, &[u8]) -> T + Send + 'static,
    ) -> Result<(T, Option<Turn>), Rejection> {
        let Admitted { headers, body, .. } = admitted;
        if body.len() <= LARGE {
            return Ok((decode(self, headers, body), None));
        }
        let left = || {
            let left = admitted.arrival.invocation.time_left(self.host.now());
            left.unwrap_or(DEFAULT_TIMEOUT)
        };
        let turn = self.heavy.turn(left()).await?;
        let (app, headers, body) = (Arc::clone(self), headers.clone(), body.clone());
        let decoding = move || decode(&app, &headers, &body);
        let (decoded, turn) = turn.work(left(), decoding).await?;
        Ok((decoded, Some(turn)))
    }

    /// Takes a call through all its stages.
    async fn perform(
        &self,
        mut call: Call,
        admitted: Admitted,
        line: &mut Line,
    ) -> Result<Outcome, Rejection> {
        let spans = line.asked(&admitted.headers, &mut call);
        // It is large, and each span around it would move it.
        let performed = Box::pin(self.perform_in(spans.clone(), call, admitted, line));
        spans.around(performed).await
    }

    async fn perform_in(
        &self,
        spans: Spans,
        mut call: Call,
        admitted: Admitted,
        line: &mut Line,
    ) -> Result<Outcome, Rejection> {
        let Admitted {
            arrival, caller, ..
        } = admitted;
        if self.shows_calls {
            tracing::info!(input = %call.input, "called with");
        }
        call.is_for(self.auth.users_of(&caller))?;
        if !self.is_ready() {
            return Err(Rejection::Unavailable);
        }
        let resolved = call.resolve(&self.toolkit)?;
        line.tool = Some(resolved.tool().clone());
        let terms = Terms {
            caller: caller.clone(),
            remembers_calls: self.protection.is_on(),
            takes_secrets: self.secrets.may_come_from_calls(),
        };
        let valid = resolved.validate(terms, &arrival, &self.host).await?;
        let invocation = arrival.invocation.clone();
        let around = Around {
            host: self.host.clone(),
            arrival,
            caller,
            secrets: Arc::clone(&self.secrets),
            desk: self.desk.clone(),
            spans,
        };
        let ready = valid.ready(around, &mut line.cache).await?;
        let granted = ready.granted();
        let outcome = ready.run_once(&self.protection).await?;
        let outcome = match (&self.desk, granted) {
            (Some(desk), Some(granted)) => {
                let base = invocation.base_url.as_deref();
                let left = invocation.time_left(self.host.now());
                let secrets = &self.secrets;
                granted
                    .instead_of(outcome, desk, base, left, secrets)
                    .await?
            }
            _ => outcome,
        };
        if self.shows_calls
            && let Ok(output) = &outcome.result
        {
            let output = serde_json::to_string(output).unwrap_or_default();
            tracing::info!(output, "answered with");
        }
        Ok(outcome)
    }
}
