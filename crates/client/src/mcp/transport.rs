//! `rmcp`'s messages over this crate's HTTP client, which limits responses and keeps credentials out
//! of what servers report.

use std::{collections::HashMap, sync::Arc};

use futures_util::stream::BoxStream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use lambda_tools_core::wire::{self, jsonrpc, mcp::CALL_ID};
use rmcp::{
    ErrorData,
    model::{
        ClientCapabilities, ClientJsonRpcMessage, ClientRequest, GetExtensions, JsonRpcMessage,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use serde_json::Value;
use sse_stream::Sse;

use super::failure::Failed;
use crate::{
    ClientError,
    budget::ResponseBudget,
    http::HttpClient,
    response::{ReceivedResponse, decode},
    retry::{RetryAdvice, advice_on},
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static(wire::IDEMPOTENCY_KEY);

type HttpError = StreamableHttpError<Failed>;

#[derive(Clone)]
pub(super) struct Transport(pub(super) HttpClient);

impl StreamableHttpClient for Transport {
    type Error = Failed;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        mut message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        remove_capabilities(&mut message);
        let body = serde_json::to_value(&message)?;
        let mut headers: HeaderMap = headers.into_iter().collect();
        headers.extend(header_of(session.as_deref()).map(|it| (SESSION, it)));
        let call_id = body["params"]["_meta"][CALL_ID].as_str();
        headers.extend(header_of(call_id).map(|it| (IDEMPOTENCY_KEY, it)));
        let budget = budget_of(&message).unwrap_or_else(|| self.0.budget());
        let exchange = self.exchange(&body, headers, budget).await;
        let (response, answer) = exchange.map_err(HttpError::Client)?;
        // 2025-11-25, Transports, Session Management.
        if session.is_some() && response.status == StatusCode::NOT_FOUND {
            return Err(HttpError::SessionExpired);
        }
        let status = response.status;
        let JsonRpcMessage::Request(request) = message else {
            if status.is_success() {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            return Err(HttpError::Client(response.status_error().into()));
        };
        let is_discovery = matches!(request.request, ClientRequest::DiscoverRequest(_));
        let answer = match answer {
            Ok(answer) if is_about_the_request(&answer, status) => answer_in(answer, &response),
            Err(error) if status.is_success() => Err(error),
            _ if is_discovery && matches!(status.as_u16(), 400 | 404 | 405) => {
                let text = "the server does not support revision 2026-07-28 of MCP";
                let error = ErrorData::invalid_request(text, None);
                Ok(ServerJsonRpcMessage::error(error, Some(request.id)))
            }
            _ => Err(response.status_error()),
        };
        let answer = answer.map_err(|error| HttpError::Client(error.into()))?;
        let session = response.headers.get(SESSION);
        let session = session.and_then(|it| Some(it.to_str().ok()?.to_owned()));
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        _session: Arc<str>,
        _auth_header: Option<String>,
        _headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        Err(HttpError::ServerDoesNotSupportDeleteSession)
    }

    /// Opens no stream: requests of a server could not be answered.
    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _auth_header: Option<String>,
        _headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        Err(HttpError::ServerDoesNotSupportSse)
    }
}

/// Removes the client's capabilities: without a stream from the server, its requests could not be
/// answered in the earlier revisions.
fn remove_capabilities(message: &mut ClientJsonRpcMessage) {
    if let JsonRpcMessage::Request(request) = message
        && let ClientRequest::InitializeRequest(initialize) = &mut request.request
    {
        initialize.params.capabilities = ClientCapabilities::default();
    }
}

/// Returns the budget that the pages of a list share.
fn budget_of(message: &ClientJsonRpcMessage) -> Option<Arc<ResponseBudget>> {
    match message {
        JsonRpcMessage::Request(request) => request.request.extensions().get().cloned(),
        _ => None,
    }
}

/// Returns the text as a header, if it can be one. `_meta` has the call id as well.
fn header_of(text: Option<&str>) -> Option<HeaderValue> {
    let text = text.filter(|it| it.trim() == *it)?;
    HeaderValue::from_str(text).ok()
}

impl Transport {
    /// Sends a message, and reads the JSON-RPC response to it.
    async fn exchange(
        &self,
        body: &Value,
        headers: HeaderMap,
        budget: Arc<ResponseBudget>,
    ) -> Result<(ReceivedResponse, Result<Value, ClientError>), Failed> {
        let url = self.0.base.clone();
        let request = (Method::POST, url, headers, body.to_string().into());
        let timeout = self.0.options.limits.timeout;
        let open = self.0.send(request, timeout, budget).await?;
        let id = &body["id"];
        let (response, message) = open.read_message(|message| answers(message, id)).await?;
        let error = response.status_error();
        match advice_on(Ok(&response)) {
            RetryAdvice::Done => Ok((response, message.and_then(|it| related(it, id)))),
            advice => Err(Failed { error, advice }),
        }
    }
}

/// Returns true for a response to the request with this id. An error may have no id: the server
/// could not read it.
fn answers(message: &Value, id: &Value) -> bool {
    let its_id = &message["id"];
    if message["error"].is_object() {
        return its_id.is_null() || its_id == id;
    }
    message.get("result").is_some() && its_id == id
}

/// Returns the response to the request with this id, completed if the server left something out.
pub(super) fn related(mut message: Value, id: &Value) -> Result<Value, ClientError> {
    if !answers(&message, id) {
        let text = "it is not a JSON-RPC response to this request";
        return Err(ClientError::Unreadable(text.to_owned()));
    }
    message["id"] = id.clone();
    message["jsonrpc"] = jsonrpc::VERSION.into();
    Ok(message)
}

/// Returns true unless the status says more than the message.
fn is_about_the_request(message: &Value, status: StatusCode) -> bool {
    let carries_errors = matches!(status.as_u16(), 400 | 404 | 405 | 422);
    status.is_success() || (carries_errors && message["error"].is_object())
}

/// Reads a JSON-RPC response, without the client's credentials, except in values and in the state,
/// which the server needs unchanged.
pub(super) fn answer_in(
    mut message: Value,
    response: &ReceivedResponse,
) -> Result<ServerJsonRpcMessage, ClientError> {
    let result = &message["result"];
    let is_complete = result["resultType"] != "input_required";
    let has_value = !result["structuredContent"].is_null() || !result["content"].is_null();
    if is_complete && has_value && result["isError"] != true {
        return decode(message);
    }
    let state = message.pointer_mut("/result/requestState").map(Value::take);
    let mut redacted = response.redacted_json(&message);
    if let Some(place) = redacted.pointer_mut("/result/requestState") {
        *place = state.unwrap_or_default();
    }
    decode(redacted)
}
