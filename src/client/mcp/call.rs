//! Calls: their retries, and the parts of a call that MCP can carry.

use std::sync::atomic::Ordering::Relaxed;

use http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    CallOutcome, CallReply, CallRequest, McpClient,
    exchange::{AttemptTime, Exchange, FailedAttempt},
    header,
    message::{HEADER_MISMATCH, RpcAnswer, RpcRequest},
    tool::ListedTool,
};
use crate::{
    client::{
        ClientError,
        http::decode,
        retry::{Attempts, RetryAdvice, RetryLimits},
    },
    payload::JsonObject,
};

impl McpClient {
    /// `tools/call`: runs one tool. All attempts have the same call id.
    ///
    /// An attempt is repeated if the server asks for it: with 408, 429, or a status with
    /// `Retry-After`, or, if it was built with this library, with a failure that may be retried.
    /// After a network error, a timeout or another 5xx, the tool may have run. It is then called
    /// again only if the server recognizes call ids, which servers built with this library do, or
    /// if the last list from [`tools`](Self::tools) declares the tool read-only or idempotent.
    ///
    /// The value is the result's `structuredContent`, as the server sent it; without it, the text,
    /// or the list of content blocks if some are not text. MCP reports an invalid input like any
    /// other failure of a tool, as [`CallOutcome::ToolError`]; errors of JSON-RPC, such as an
    /// unknown tool, are a [`CallOutcome::ServerError`].
    ///
    /// # Errors
    /// [`ClientError::Unsupported`] if the call has a user, tokens, secrets or a trace id, which
    /// MCP cannot carry, or if no attempt got a response about the call.
    pub async fn call(&self, call: &CallRequest) -> Result<CallReply, ClientError> {
        let call_id = call.id();
        let mut request = RpcRequest::call(&call.tool_id, &call_id, params_of(call)?);
        let mut attempts = Attempts::new(self.limits);
        let mut has_listed = false;
        loop {
            let time = AttemptTime::new(attempts.begin());
            request.headers = self.argument_headers(call);
            let (reply, advice) = match self.attempt(&request, time).await {
                // 2026-07-28, Streamable HTTP, Client Behavior: the list may have changed.
                Ok((exchange, _)) if is_header_mismatch(&exchange) && !has_listed => {
                    has_listed = true;
                    let deadline = attempts.remaining();
                    self.list(RetryLimits {
                        deadline,
                        ..self.limits
                    })
                    .await?;
                    continue;
                }
                Ok((exchange, _)) => {
                    let reply = CallReply::of_answer(exchange.into_answer()?, &call_id)?;
                    let advice = reply.retry_advice();
                    (Ok(reply), advice)
                }
                Err(failed) => {
                    let advice = self.advice_after(&failed, call);
                    (Err(failed.error), advice)
                }
            };
            if attempts.wait_for_next(advice).await {
                continue;
            }
            let attempts = attempts.count;
            return reply.map(|it| CallReply { attempts, ..it });
        }
    }

    /// Runs one tool and returns its value.
    ///
    /// Many servers, and those built with this library, wrap a value that is not an object as
    /// `{"result": …}`, and nothing in the response says so. A value that is not a `V`, but has this
    /// form, is therefore read once more without the wrapper.
    ///
    /// # Errors
    /// Those of [`call`](Self::call), [`ClientError::NoValue`] for any other outcome, and
    /// [`ClientError::Unreadable`] for a value that is not a `V`.
    pub async fn run<V: DeserializeOwned>(&self, call: &CallRequest) -> Result<V, ClientError> {
        let value = match self.call(call).await?.outcome {
            CallOutcome::Value(value) => value,
            other => return Err(ClientError::NoValue(Box::new(other))),
        };
        if let Ok(value) = V::deserialize(&value) {
            return Ok(value);
        }
        match value {
            Value::Object(mut object) if object.len() == 1 && object.contains_key("result") => {
                decode(object["result"].take())
            }
            value => decode(value),
        }
    }

    fn argument_headers(&self, call: &CallRequest) -> HeaderMap {
        let listed = self.listed();
        listed.get(&call.tool_id).map_or_else(HeaderMap::new, |it| {
            header::argument_headers(&it.headers, &call.input)
        })
    }

    /// A call that may have run is not repeated if it might then run twice.
    fn advice_after(&self, failed: &FailedAttempt, call: &CallRequest) -> RetryAdvice {
        let is_repeatable = |it: &ListedTool| it.is_repeatable;
        let is_safe = !failed.may_have_run
            || self.shared.recognizes_call_ids.load(Relaxed)
            || self.listed().get(&call.tool_id).is_some_and(is_repeatable);
        if is_safe {
            failed.advice
        } else {
            RetryAdvice::Done
        }
    }
}

/// The params of a call, if MCP can carry it.
fn params_of(call: &CallRequest) -> Result<JsonObject, ClientError> {
    if call.user_id.is_some() || !call.tokens.is_empty() || !call.secrets.is_empty() {
        let text = "MCP calls cannot carry a user id, tokens or secrets: the server takes the user \
                    from the credentials, and has a store for secrets";
        return Err(ClientError::Unsupported(text));
    }
    if call.trace_id.is_some() {
        return Err(ClientError::Unsupported(
            "MCP calls cannot carry a trace id",
        ));
    }
    let mut params = JsonObject::new();
    params.insert("name".into(), call.tool_id.as_str().into());
    params.insert("arguments".into(), call.input.clone());
    if !call.input_responses.is_empty() {
        let responses = call.input_responses.iter();
        let responses: JsonObject = responses
            .map(|(key, it)| (key.clone(), it.encode()))
            .collect();
        params.insert("inputResponses".into(), responses.into());
    }
    if let Some(state) = &call.request_state {
        params.insert("requestState".into(), state.expose().into());
    }
    Ok(params)
}

fn is_header_mismatch(exchange: &Exchange) -> bool {
    matches!(&exchange.answer, Ok(RpcAnswer::Error(error)) if error.code == HEADER_MISMATCH)
}
