//! The engine: a call through its stages, in whichever protocol it was asked for.
//!
//! `Call` → `ResolvedCall` → `Valid` → `Prepared` → `Outcome`. Each stage consumes the one before it, so
//! that leaving one out does not compile: nothing that was not validated can run, nothing that lacks
//! a secret can start. No protocol, no HTTP and no event is known here.

mod claim;
mod execution;
#[cfg(feature = "oauth")]
mod grants;
pub(crate) mod large_requests;
mod prepare;
pub(crate) mod rejection;
mod run;
mod validate;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::Value;

#[cfg(feature = "oauth")]
use crate::oauth::Broker;
use crate::{
    Auth, Caller, Secret, Toolkit,
    arrival::Arrival,
    auth::PermittedUsers,
    clock::Clock,
    idempotency::deduplication::Deduplication,
    observe::{spans::Spans, trail::Trail},
    secrets::SecretCache,
    text::LONGEST_ID,
    tool::{id::Selector, toolkit::ToolNotFound},
};

use execution::{CallId, Execution};
use large_requests::{LargeRequestPermit, LargeRequests};
use rejection::Rejection;
pub(crate) use run::Outcome;
use validate::ResolvedCall;

/// How long a tool may take unless it [says otherwise](crate::Tool::timeout).
///
/// API Gateway gives up after 29 seconds (REST APIs) or 30 (HTTP APIs); an answer of our own, which
/// says whether to retry, has to leave before that.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(28);

/// What calls need, whichever protocol they come in.
pub(crate) struct Engine {
    pub(crate) toolkit: Arc<Toolkit>,
    pub(crate) auth: Auth,
    pub(crate) secrets: Arc<SecretCache>,
    pub(crate) deduplication: Arc<Deduplication>,
    /// Where users allow tools to act for them.
    #[cfg(feature = "oauth")]
    pub(crate) broker: Option<Arc<Broker>>,
    pub(crate) clock: Clock,
    /// Where large requests wait for their turn.
    pub(crate) large_requests: LargeRequests,
    /// Whether the owner takes calls now.
    pub(crate) is_healthy: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Whether inputs and outputs are logged, which only the local server does.
    pub(crate) shows_calls: bool,
}

/// A call as it was asked for.
pub(crate) struct Call {
    pub(crate) selector: Selector,
    pub(crate) call_id: Option<String>,
    pub(crate) trace_id: Option<String>,
    /// The parameters that are integers and have lost digits.
    pub(crate) unkept_integers: Vec<String>,
    pub(crate) input: Value,
    pub(crate) given: ClientContext,
    /// Of a large call, until its input is checked.
    pub(crate) turn: Option<LargeRequestPermit>,
}

/// What the client gives besides the input.
#[derive(Default)]
pub(crate) struct ClientContext {
    pub(crate) user_id: Option<String>,
    pub(crate) tokens: BTreeMap<String, Secret>,
    pub(crate) secrets: BTreeMap<String, Secret>,
}

impl Engine {
    /// Takes a call through all its stages.
    ///
    /// `trail` is handed in, not returned: a request that is dropped on the way leaves a line in the
    /// log too.
    pub(crate) async fn call(
        self: &Arc<Self>,
        mut call: Box<Call>,
        arrival: Arrival,
        caller: Caller,
        trail: &mut Trail,
    ) -> Result<Outcome, Rejection> {
        let id = CallId::of(call.call_id.take(), &self.clock);
        let request_id = arrival.invocation.request_id.as_deref();
        let spans = trail.begin(&call.selector, id.as_str(), request_id);
        // It is large, and each span around it would move it.
        let performed = Box::pin(self.perform(call, id, arrival, caller, spans.clone(), trail));
        spans.around(performed).await
    }

    async fn perform(
        self: &Arc<Self>,
        mut call: Box<Call>,
        id: CallId,
        arrival: Arrival,
        caller: Caller,
        spans: Spans,
        trail: &mut Trail,
    ) -> Result<Outcome, Rejection> {
        if self.shows_calls {
            tracing::info!(input = %call.input, "called with");
        }
        call.hold_to(self.auth.users_of(&caller))?;
        if !self.is_healthy() {
            return Err(Rejection::Unavailable);
        }
        let entry = self.toolkit.resolve(&call.selector);
        let entry = entry.map_err(|not_found| unresolved(&call.selector, not_found))?;
        trail.tool = Some(entry.clone());
        let execution = Box::new(Execution {
            engine: Arc::clone(self),
            entry,
            id,
            arrival,
            caller,
            spans,
        });
        let valid = ResolvedCall { call, execution }.validate().await?;
        let (prepared, cache) = valid.prepare().await;
        trail.cache = cache;
        let outcome = prepared?.run_once().await?;
        if self.shows_calls
            && let Ok(output) = &outcome.result
        {
            let output = serde_json::to_string(output).unwrap_or_default();
            tracing::info!(output, "answered with");
        }
        Ok(outcome)
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.is_healthy
            .as_ref()
            .is_none_or(|is_healthy| is_healthy())
    }
}

impl Call {
    /// Holds the call to the users for whom its caller may call.
    fn hold_to(&mut self, users: PermittedUsers<'_>) -> Result<(), Rejection> {
        let named = self.given.user_id.as_deref();
        let detail = match (users, named) {
            (PermittedUsers::Only(user), _) if user.len() > LONGEST_ID => {
                "The JWT's sub claim is too long for a user's id."
            }
            (PermittedUsers::Only(user), None) => {
                self.given.user_id = Some(user.to_owned());
                return Ok(());
            }
            (PermittedUsers::Only(user), Some(named)) if named != user => {
                "'context.user_id' is not the JWT's sub claim."
            }
            (PermittedUsers::None, Some(_)) => "'context.user_id' needs a JWT with that sub claim.",
            _ => return Ok(()),
        };
        let message = "The credentials do not allow calls for this user";
        Err(Rejection::malformed(message, detail))
    }
}

fn unresolved(selector: &Selector, not_found: ToolNotFound) -> Rejection {
    let qualified = Arc::clone(&selector.qualified);
    match not_found {
        ToolNotFound::Tool { closest } => Rejection::UnknownTool { qualified, closest },
        ToolNotFound::Version { version, available } => Rejection::UnknownVersion {
            qualified,
            version,
            available,
        },
    }
}
