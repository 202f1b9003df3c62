//! Testing tools: with calls, with events, and as functions. The page [`tools`](crate::tools) describes
//! all three.
//!
//! [`call`] takes a call through everything that the server does with it. [`context`] builds the context
//! for a test that calls a tool's function directly. [`replay`] handles recorded requests like the server,
//! and compares the responses:
//!
//! ```no_run
//! use lambda_tools::{Server, Toolkit, secrets::Secrets, testing};
//! # fn tools(_api: &str) -> Vec<lambda_tools::Tool> { vec![] }
//!
//! // In a test, this function has #[tokio::test]; `api` is a server in place of the API.
//! async fn events(api: &str) {
//!     let secrets = Secrets::fixed([("RATES_KEY", "VALUE_OF_RATES_KEY")]);
//!     let server = Server::new(Toolkit::new(tools(api)).unwrap()).secrets(secrets);
//!     testing::replay("events", server).await;
//! }
//! ```

mod call;
pub(crate) mod record;
mod replay;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use axum::Router;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use lambda_http::lambda_runtime::{Context, Diagnostic};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Caller, Protocol, Server,
    assemble::assemble,
    call::ClientContext,
    clock::{Clock, FIXED},
    event::{self, EventResponse},
    protocol::app::AppState,
};

pub use call::{TestCall, TestOutcome, TestRejection, call};
#[doc(inline)]
pub use lambda_tools_core::testing::{ContextBuilder, context};
pub use replay::replay;

/// The expected response to an event.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ExpectedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers that clients read, with names in lower case. Other headers are not compared.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body: JSON if it is valid JSON, else a string.
    #[serde(default)]
    pub body: Value,
}

impl ExpectedResponse {
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        // The tag changes with the body, which is compared itself.
        let compared = Protocol::response_headers().filter(|name| *name != "etag");
        // With these, browsers decide what a page may do.
        let compared = compared.chain([
            "access-control-allow-headers",
            "access-control-allow-methods",
            "access-control-allow-origin",
        ]);
        let headers = compared.filter_map(|name| {
            let value = headers.get(name)?.to_str().ok()?;
            Some((name.to_owned(), value.to_owned()))
        });
        Self {
            status: status.as_u16(),
            headers: headers.collect(),
            body: match serde_json::from_slice(body) {
                Ok(json) => json,
                Err(_) if body.is_empty() => Value::Null,
                Err(_) => String::from_utf8_lossy(body).into(),
            },
        }
    }
}

/// An in-process Lambda function: takes events and returns responses, without AWS or sockets.
pub struct LambdaFunction {
    router: Router,
    app: Arc<AppState>,
    /// The clock's advance, in milliseconds.
    elapsed: Arc<AtomicU64>,
}

#[cfg(feature = "tasks")]
impl Server {
    /// Lets calls outlast their requests, and passes on the events with which a function would invoke
    /// itself.
    #[doc(hidden)]
    pub fn on_task(mut self, send: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.worker = Some(Box::new(move |ticket, _| {
            send(serde_json::json!({event::TASK_EVENT: ticket}).to_string());
            Box::pin(std::future::ready(Ok(())))
        }));
        self
    }
}

impl LambdaFunction {
    /// Creates the function that [`serve`](crate::serve) would run, with a fixed clock (5 October
    /// 2023, 12:00:00 UTC), so that calls take no time, and one fixed id. Environment variables are
    /// ignored: without [`Server::auth`] anyone may call, without [`Server::secrets`] there is no
    /// store, without [`Server::idempotency`] every call runs.
    #[must_use]
    pub fn new(server: impl Into<Server>) -> Self {
        Self::with(server.into(), FIXED)
    }

    /// Creates the same function with other clocks, such as those of a simulation: `wall` returns the
    /// time of day, `instant` points in time that durations are measured with.
    #[must_use]
    pub fn with_clocks(
        server: impl Into<Server>,
        wall: impl Fn() -> SystemTime + Send + Sync + 'static,
        instant: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        Self::with(server.into(), Clock::of(wall, instant))
    }

    fn with(server: Server, clock: Clock) -> Self {
        let elapsed = Arc::default();
        let clock = clock.movable(&elapsed);
        let (router, app) = assemble(server, clock.clone(), clock);
        Self {
            router,
            app,
            elapsed,
        }
    }

    /// Advances the clock, which does not run by itself, by whole milliseconds.
    pub fn advance(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.elapsed.fetch_add(ms, Ordering::Relaxed);
    }

    /// Calls a tool without an event; see [`call`]. Calls to the same function share its secrets,
    /// its clock and the calls that it remembers.
    pub fn call(&self, tool: impl Into<String>, input: Value) -> TestCall {
        TestCall {
            engine: Arc::clone(&self.app.engine),
            tool: tool.into(),
            input,
            call_id: None,
            caller: Caller::Anyone,
            context: ClientContext::default(),
            deadline: None,
        }
    }

    /// Handles one event, passed as JSON text, and returns the JSON that Lambda would send back.
    ///
    /// # Errors
    /// A failed invocation, as Lambda reports it: the event is of a kind that the server does not
    /// [accept](Server::events).
    pub async fn invoke(&self, event: &str) -> Result<Value, crate::Error> {
        self.invoke_with_context(event, "").await
    }

    /// Handles one event that comes with this client context: JSON text, as `cargo lambda invoke
    /// --client-context-file` sends it.
    ///
    /// # Errors
    /// The errors of [`LambdaFunction::invoke`].
    pub async fn invoke_with_context(
        &self,
        event: &str,
        client_context: &str,
    ) -> Result<Value, crate::Error> {
        let json = self.invoke_for_json(event, client_context).await?;
        Ok(serde_json::from_slice(&json)?)
    }

    /// Handles one event like [`LambdaFunction::invoke_with_context`], and returns the JSON text of
    /// the response, as Lambda receives it.
    ///
    /// # Errors
    /// The errors of [`LambdaFunction::invoke`].
    pub async fn invoke_for_json(
        &self,
        event: &str,
        client_context: &str,
    ) -> Result<Bytes, crate::Error> {
        let mut context = Context::default();
        event::read_client_context(client_context.as_bytes(), &mut context);
        // Tests may spawn it, and its type is deeper than the compiler's usual limit.
        let json: BoxFuture<'_, _> = Box::pin(self.json_of(event, context));
        Ok(json.await.map_err(|error| error.error_message)?)
    }

    async fn json_of(&self, event: &str, context: Context) -> Result<Bytes, Diagnostic> {
        let router = self.router.clone();
        match event::invoke(&self.app, router, event, context, false).await? {
            EventResponse::Whole(json) => Ok(json),
            EventResponse::Stream(response) => response.whole().await,
        }
    }

    /// Handles one event and returns the response in the format of an expected file.
    ///
    /// # Errors
    /// The errors of [`LambdaFunction::invoke`].
    pub async fn respond(&self, event: &str) -> Result<ExpectedResponse, crate::Error> {
        Self::response_in(&self.invoke(event).await?)
    }

    fn response_in(response: &Value) -> Result<ExpectedResponse, crate::Error> {
        let mut headers = HeaderMap::new();
        for map in [&response["headers"], &response["multiValueHeaders"]] {
            for (name, value) in map.as_object().into_iter().flatten() {
                let value = value.get(0).unwrap_or(value).as_str().unwrap_or_default();
                headers.insert(http::HeaderName::try_from(name)?, value.parse()?);
            }
        }
        let status = response["statusCode"].as_u64();
        // A call by itself: the answer is the body alone.
        let answer = response.to_string();
        let body = status.map_or(&*answer, |_| response["body"].as_str().unwrap_or_default());
        let status = StatusCode::from_u16(u16::try_from(status.unwrap_or(200))?)?;
        Ok(ExpectedResponse::of(status, &headers, body.as_bytes()))
    }
}
