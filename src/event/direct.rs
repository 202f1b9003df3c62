//! Direct calls: `{"tool_id": …, "input": …}`, as Step Functions, schedulers, other functions and
//! `aws lambda invoke` send them.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::{
    Caller, DirectCalls,
    arrival::{Invocation, InvocationError},
    protocol::{DirectCallFormat, admission::AppState, direct},
};

/// Answers a direct call. IAM has admitted whoever invokes the function itself, so it needs no
/// credentials.
///
/// With [`DirectCalls::Errors`], the invocation fails instead if the call does not succeed, for
/// callers such as Step Functions that can only catch errors.
pub(super) async fn answer(
    app: &Arc<AppState>,
    event: &str,
    invocation: Invocation,
) -> Result<Box<RawValue>, InvocationError> {
    let caller = (app.direct_calls != DirectCalls::Off).then_some(Caller::Invoker);
    let format = DirectCallFormat::default();
    let answer = direct::answer(app, format, event, caller, invocation).await;
    match answer.error {
        Some(error) if app.direct_calls == DirectCalls::Errors => Err(error),
        _ => Ok(answer.body),
    }
}
