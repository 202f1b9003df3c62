//! From (method, path) to an operation, and from what came of it to a response.
//!
//! The HTTP surface is one [`Router`], so that it can be layered, merged with routes of one's own
//! and tested without a socket. Only this module and its children know status codes.

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
use http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::{
    Auth, Toolkit,
    call::{Call, Outcome},
    host::{Host, Invocation, LARGEST_PAYLOAD},
    rejection::Rejection,
};

/// What every operation needs.
pub(crate) struct App {
    pub(crate) toolkit: Toolkit,
    pub(crate) catalogue: oxp::Catalogue,
    pub(crate) host: Host,
    pub(crate) auth: Auth,
    pub(crate) ready: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

type Shared = State<Arc<App>>;

/// OXP 1.0: `/health`, `/tools`, `/tools/call`. The specification's examples post to `/call`.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/tools", get(tools))
        .route("/tools/call", post(call))
        .route("/call", post(call))
        .fallback(async || oxp::not_found())
        .method_not_allowed_fallback(async || oxp::method_not_allowed())
        .with_state(app)
}

async fn health(State(app): Shared) -> Response {
    oxp::health(app.is_ready())
}

async fn tools(State(app): Shared, request: Request) -> Response {
    let (parts, body) = match app.admit(request).await {
        Ok(admitted) => admitted,
        Err(rejection) => return oxp::rejected(&rejection),
    };
    oxp::list(&app, &parts.headers, &body, &Invocation::of(&parts))
}

async fn call(State(app): Shared, request: Request) -> Response {
    let (parts, body) = match app.admit(request).await {
        Ok(admitted) => admitted,
        Err(rejection) => return oxp::rejected(&rejection),
    };
    oxp::call(&app, &parts.headers, &body, &Invocation::of(&parts)).await
}

async fn read(request: Request<Body>) -> Result<(Parts, Bytes), Rejection> {
    let (parts, body) = request.into_parts();
    match Limited::new(body, LARGEST_PAYLOAD).collect().await {
        Ok(body) => Ok((parts, body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Err(Rejection::malformed(
            "The request is too large",
            format!("The body is over {LARGEST_PAYLOAD} bytes, which is what AWS Lambda takes."),
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
    async fn admit(&self, request: Request) -> Result<(Parts, Bytes), Rejection> {
        self.auth.check(request.headers())?;
        read(request).await
    }

    /// Takes a call through all its stages.
    async fn perform(&self, call: Call, invocation: &Invocation) -> Result<Outcome, Rejection> {
        if !self.is_ready() {
            return Err(Rejection::Unavailable);
        }
        let valid = call.resolve(&self.toolkit)?.validate()?;
        Ok(valid.ready(self.host, invocation)?.run().await)
    }
}
