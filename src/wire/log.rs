//! The line that each call leaves in the log, whichever protocol it came in.

use std::time::Duration;

use super::oxp;
use crate::{Caller, call::Outcome, id::Selector, rejection::Rejection};

/// The caller, where it is known.
pub(super) struct Named(pub(super) Option<String>);

impl Named {
    pub(super) fn of(caller: &Caller) -> Self {
        Self(match caller {
            Caller::Anyone => None,
            named => Some(named.to_string()),
        })
    }
}

/// A call that did not reach its tool.
pub(super) struct Refused {
    pub(super) asked_for: Option<Selector>,
    pub(super) after: Duration,
    pub(super) named: Named,
}

pub(super) fn outcome(outcome: &Outcome, named: &Named) {
    let ms = oxp::milliseconds(outcome.duration).as_f64();
    let (tool, call_id) = (outcome.tool.as_str(), outcome.call_id.as_str());
    let caller = named.0.as_deref();
    let replayed = outcome.is_replay.then_some(true);
    match &outcome.result {
        Ok(_) => tracing::info!(
            tool,
            ms,
            outcome = "success",
            call_id,
            caller,
            replayed,
            "call"
        ),
        Err(failure) => {
            let why = failure.parts().developer_message.as_deref();
            let why = why.unwrap_or_else(|| failure.message());
            tracing::warn!(
                tool,
                ms,
                outcome = "failure",
                call_id,
                caller,
                replayed,
                why,
                "call"
            );
        }
    }
}

pub(super) fn rejection(rejection: &Rejection, call: Option<&Refused>) {
    let why = match rejection {
        Rejection::Unauthenticated(why) => (*why).to_owned(),
        other => oxp::detail_of(other),
    };
    let tool = call.and_then(|call| call.asked_for.as_ref().map(ToString::to_string));
    let ms = call.and_then(|call| oxp::milliseconds(call.after).as_f64());
    let caller = call.and_then(|call| call.named.0.as_deref());
    let reason = rejection.reason();
    tracing::warn!(tool, ms, outcome = "rejection", reason, caller, why, "call");
}
