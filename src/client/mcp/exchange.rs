//! One request and its response: the headers, the status, and the message in the body.

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE};

use super::{
    McpClient,
    event_stream::EventReader,
    header,
    message::{RpcAnswer, RpcRequest, answer_in},
    revision::McpRevision,
};
use crate::{
    client::{
        ClientError,
        http::ReceivedResponse,
        retry::{RetryAdvice, advice_on},
    },
    payload::JsonObject,
};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The time of one attempt, which may take several requests.
#[derive(Clone, Copy)]
pub(super) struct AttemptTime {
    started: Instant,
    limit: Duration,
}

impl AttemptTime {
    pub(super) fn new(limit: Duration) -> Self {
        let started = Instant::now();
        Self { started, limit }
    }

    fn remaining(self) -> Duration {
        self.limit.saturating_sub(self.started.elapsed())
    }
}

/// The revision and the session of a request; neither is known for `initialize`.
#[derive(Clone, Copy, Default)]
pub(super) struct RequestContext<'a> {
    pub(super) revision: Option<McpRevision>,
    pub(super) session: Option<&'a HeaderValue>,
}

/// A response that says something about its request.
pub(super) struct Exchange {
    pub(super) response: ReceivedResponse,
    /// The message in the body, if it can be read.
    pub(super) answer: Result<RpcAnswer, ClientError>,
}

/// An attempt without such a response.
pub(super) struct FailedAttempt {
    pub(super) error: ClientError,
    pub(super) advice: RetryAdvice,
    /// True if the server may have acted on the request, and did not ask for a repetition.
    pub(super) may_have_run: bool,
}

impl FailedAttempt {
    /// The attempt failed before the request that matters was sent.
    pub(super) fn before_it_ran(self) -> Self {
        Self {
            may_have_run: false,
            ..self
        }
    }
}

impl From<ClientError> for FailedAttempt {
    fn from(error: ClientError) -> Self {
        Self {
            error,
            advice: RetryAdvice::Done,
            may_have_run: false,
        }
    }
}

impl Exchange {
    /// The result, for requests whose JSON-RPC errors are errors of the client as well.
    pub(super) fn into_result(self) -> Result<JsonObject, ClientError> {
        let status = self.response.status;
        match self.answer {
            Ok(RpcAnswer::Result(result)) if status.is_success() => Ok(result),
            Ok(RpcAnswer::Error(error)) if carries_errors(status) => Err(error.into_client_error()),
            Err(error) if status.is_success() => Err(error),
            _ => Err(self.response.status_error()),
        }
    }

    /// The answer to a call: a result, or a JSON-RPC error.
    pub(super) fn into_answer(self) -> Result<RpcAnswer, ClientError> {
        let status = self.response.status;
        match self.answer {
            Ok(answer @ RpcAnswer::Error(_)) if carries_errors(status) => Ok(answer),
            answer if status.is_success() => answer,
            _ => Err(self.response.status_error()),
        }
    }
}

/// True for the statuses of JSON-RPC errors. Others say more than the error does.
fn carries_errors(status: StatusCode) -> bool {
    status.is_success() || matches!(status.as_u16(), 400 | 404 | 405 | 422)
}

impl McpClient {
    /// Sends a request once.
    pub(super) async fn exchange(
        &self,
        context: RequestContext<'_>,
        request: &RpcRequest<'_>,
        time: AttemptTime,
    ) -> Result<Exchange, FailedAttempt> {
        let id = self.shared.next_id.fetch_add(1, Relaxed);
        let body = request.encode(Some(id), context.revision).into();
        let budget = self.http.budget();
        let mut events = EventReader::new(id, budget.clone());
        let is_complete =
            |headers: &HeaderMap, body: &[u8]| is_event_stream(headers) && events.read(body);
        let (url, headers) = (self.http.base().clone(), headers_of(context, request));
        let sent = self
            .http
            .post_until(url, headers, body, time.remaining(), budget, is_complete);
        let response = checked(sent.await)?;
        let answer = if !is_event_stream(&response.headers) {
            response.json().and_then(|message| answer_in(message, id))
        } else if let Some(message) = events.finish(&response.body) {
            message.and_then(|message| answer_in(message, id))
        } else {
            return Err(FailedAttempt {
                error: ClientError::Unreachable("the stream ended without a response".into()),
                advice: RetryAdvice::Again(None),
                may_have_run: true,
            });
        };
        let answer = answer.map(|it| it.without_credentials(&response));
        Ok(Exchange { response, answer })
    }

    /// Sends a notification once.
    pub(super) async fn notify(
        &self,
        context: RequestContext<'_>,
        notification: &RpcRequest<'_>,
        time: AttemptTime,
    ) -> Result<(), FailedAttempt> {
        let body = notification.encode(None, context.revision).into();
        let (url, headers) = (self.http.base().clone(), headers_of(context, notification));
        let sent = self.http.post(url, headers, body, time.remaining());
        let response = checked(sent.await)?;
        if !response.status.is_success() {
            return Err(response.status_error().into());
        }
        Ok(())
    }
}

/// Rejects a response whose status asks for a repetition, and a missing response.
fn checked(
    response: Result<ReceivedResponse, ClientError>,
) -> Result<ReceivedResponse, FailedAttempt> {
    let advice = advice_on(&response);
    let failed = |error, may_have_run| FailedAttempt {
        error,
        advice,
        may_have_run,
    };
    match (response, advice) {
        (Err(error), _) => Err(failed(error, true)),
        (Ok(response), RetryAdvice::Again(after)) => {
            // A server that names a time, or rejects the rate of requests, has not acted. Any other
            // error may come from a gateway that stopped waiting.
            let is_invited = after.is_some() || matches!(response.status.as_u16(), 408 | 429);
            Err(failed(response.status_error(), !is_invited))
        }
        (Ok(response), RetryAdvice::Done) => Ok(response),
    }
}

pub(super) fn headers_of(context: RequestContext<'_>, request: &RpcRequest<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(session) = context.session {
        headers.insert(SESSION, session.clone());
    }
    // `_meta` has the id as well, so an id that no header can carry is not lost.
    if let Some(key) = request.call_id.and_then(header::plain) {
        headers.insert(IDEMPOTENCY_KEY, key);
    }
    let Some(revision) = context.revision else {
        return headers;
    };
    headers.insert(VERSION, HeaderValue::from_static(revision.as_str()));
    if revision.is_modern() {
        headers.insert(METHOD, HeaderValue::from_static(request.method));
        headers.extend(request.tool.map(|name| (NAME, header::encoded(name))));
        headers.extend(request.headers.clone());
    }
    headers
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let essence = kind.and_then(|it| it.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}
