//! Direct calls: `{"tool_id": …, "input": …}`, as Step Functions, schedulers, other functions and
//! `aws lambda invoke` send them.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::value::RawValue;

use crate::{
    Caller,
    arrival::Invocation,
    protocol::{
        DirectCallFormat,
        admission::AppState,
        direct::{self, Admission, EventCall},
    },
};

/// Answers a direct call. IAM has admitted whoever invokes the function itself, so it needs no
/// credentials.
pub(super) async fn answer(
    app: &Arc<AppState>,
    event: &str,
    invocation: Invocation,
) -> Box<RawValue> {
    let call = EventCall {
        format: Box::new(DirectCallFormat::default()),
        event,
        headers: HeaderMap::new(),
        admission: Admission::Admitted(Caller::Invoker),
        invocation,
    };
    direct::answer(app, call).await
}
