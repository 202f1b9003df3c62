//! Direct calls: `{"tool_id": …, "input": …}`, as Step Functions, schedulers, other functions and
//! `aws lambda invoke` send them.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::value::RawValue;

use crate::{
    Caller, EventKind,
    arrival::{Invocation, InvocationError},
    protocol::{
        DirectCallFormat,
        admission::AppState,
        direct::{self, Admission, EventCall},
    },
};

/// Answers a direct call. IAM has admitted whoever invokes the function itself, so it needs no
/// credentials.
///
/// With [`EventKind::DirectErrors`], the invocation fails instead if the call does not succeed, for
/// callers such as Step Functions that can only catch errors.
pub(super) async fn answer(
    app: &Arc<AppState>,
    event: &str,
    invocation: Invocation,
) -> Result<Box<RawValue>, InvocationError> {
    let call = EventCall {
        format: Box::new(DirectCallFormat::default()),
        event,
        headers: HeaderMap::new(),
        admission: Admission::Admitted(Caller::Invoker),
        invocation,
    };
    let (body, error) = direct::answer(app, call).await;
    match error {
        Some(error) if app.events.contains(&EventKind::DirectErrors) => Err(error),
        _ => Ok(body),
    }
}
