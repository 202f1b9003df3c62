//! The engine, which takes a call through its stages. It is the same for all protocols.
//!
//! `Call` → `ResolvedCall` → `ValidatedCall` → `PreparedCall` → `Outcome`. Each stage consumes the
//! previous one, so skipping a stage does not compile: a call that was not validated cannot run,
//! and a call that lacks a secret cannot start. The engine knows nothing about protocols, HTTP or
//! events.

pub(crate) mod background;
mod claim;
#[cfg(feature = "oauth")]
mod grants;
mod prepare;
pub(crate) mod rejection;
mod run;
mod validate;
pub(crate) mod watch;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    Auth, Caller, DEFAULT_TIMEOUT, Secret, Toolkit,
    arrival::Arrival,
    auth::PermittedUsers,
    clock::Clock,
    idempotency::deduplication::{Claim, Deduplication},
    observe::{spans::Spans, trail::Trail},
    quotas::Quotas,
    secrets::SecretCache,
    text::LONGEST_ID,
    tool::{
        id::Selector,
        parts::TaskSupport,
        progress::Follower,
        question::Answers,
        toolkit::{ToolEntry, ToolNotFound},
    },
};

use background::HandOver;
use rejection::Rejection;
pub(crate) use run::Outcome;
use validate::ResolvedCall;
use watch::Watch;

/// The maximum time limit of a tool: longer than any platform lets a call run. Adding a much longer
/// time to an `Instant` would overflow.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);

/// The time limit of a tool in the background that does not set its own: that of a function on
/// Lambda.
const DEFAULT_LIMIT: Duration = Duration::from_mins(15);

/// Everything that calls need, in any protocol.
pub(crate) struct Engine {
    pub(crate) toolkit: Arc<Toolkit>,
    pub(crate) auth: Auth,
    pub(crate) secrets: Arc<SecretCache>,
    pub(crate) deduplication: Arc<Deduplication>,
    pub(crate) quotas: Quotas,
    /// Manages the grants by which users allow tools to act for them.
    #[cfg(feature = "oauth")]
    pub(crate) broker: Option<Arc<crate::oauth::Broker>>,
    pub(crate) clock: Clock,
    /// The owner's health check; while it fails, calls are rejected.
    pub(crate) is_healthy: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// True if lists, and texts about other tools, show only the tools that their reader may call.
    pub(crate) lists_callable: bool,
    /// The ids of secrets, and the headers in which calls bring them.
    pub(crate) secret_headers: Vec<(String, HeaderName)>,
    /// True if inputs and outputs are logged, which only the local server does.
    pub(crate) shows_calls: bool,
    pub(crate) watch: Watch,
    /// What takes the calls that outlast their requests, if any may.
    pub(crate) worker: Option<HandOver>,
    /// The time after which a client gets a task instead of an outcome.
    pub(crate) task_after: Duration,
}

/// A call as requested.
pub(crate) struct Call {
    pub(crate) selector: Selector,
    /// The resource or the prompt, if this is not a call of a tool.
    pub(crate) entry: Option<ToolEntry>,
    pub(crate) call_id: Option<String>,
    pub(crate) trace_id: Option<String>,
    pub(crate) input: Value,
    pub(crate) client_context: ClientContext,
    pub(crate) background: Background,
    /// The follower to whom the call's progress is reported.
    pub(crate) follower: Option<Follower>,
    /// The room for a large body, held until its input has been checked.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// The place where a call of a tool in the [background](crate::Tool::background) runs.
#[derive(Clone, Default)]
pub(crate) enum Background {
    /// In its own invocation, which the caller waits for.
    InPlace,
    /// Elsewhere. The client waits for the outcome, as long as its request may take.
    #[default]
    Elsewhere,
    /// Elsewhere. The client takes a task instead of the outcome.
    Task,
    /// Here: it was handed over.
    Started(Box<Claim>),
}

/// The context that the client sends in addition to the input.
#[derive(Default)]
pub(crate) struct ClientContext {
    pub(crate) user_id: Option<String>,
    pub(crate) tokens: BTreeMap<String, Secret>,
    pub(crate) secrets: BTreeMap<String, Secret>,
    /// The user's answers to questions; `None` if the client cannot ask its user.
    pub(crate) answers: Option<Answers>,
}

/// The facts that every stage of a call needs.
#[derive(Clone)]
struct Execution {
    engine: Arc<Engine>,
    entry: ToolEntry,
    /// The call's id: the client's, or a generated one.
    id: String,
    /// Only a call with an id from the client can be recognized when it is repeated.
    has_client_id: bool,
    arrival: Arrival,
    caller: Caller,
    background: Background,
    follower: Option<Follower>,
    /// The spans that enclose the call.
    spans: Spans,
}

impl Engine {
    /// Takes a call through all its stages.
    ///
    /// `trail` is passed in, not returned, so that a request dropped halfway is logged too.
    pub(crate) async fn call(
        self: &Arc<Self>,
        call: Box<Call>,
        arrival: Arrival,
        caller: Caller,
        trail: &mut Trail,
    ) -> Result<Outcome, Rejection> {
        let id = call.call_id.clone();
        let id = id.unwrap_or_else(|| self.clock.id().to_string());
        let request_id = arrival.invocation.request_id.as_deref();
        let spans = trail.begin(&call.selector, &id, request_id);
        // Boxed because it is large, and each enclosing span would move it.
        let stages = Box::pin(self.perform(call, id, arrival, caller, spans.clone(), trail));
        spans.enclose(stages).await
    }

    async fn perform(
        self: &Arc<Self>,
        mut call: Box<Call>,
        id: String,
        arrival: Arrival,
        caller: Caller,
        spans: Spans,
        trail: &mut Trail,
    ) -> Result<Outcome, Rejection> {
        if self.shows_calls {
            tracing::info!(input = %call.input, "called with");
        }
        call.restrict_to(self.auth.users_of(&caller))?;
        if !self.is_healthy() {
            return Err(Rejection::Unavailable);
        }
        let resolve = || {
            let is_listed = |entry: &ToolEntry| self.is_listed(entry, &caller);
            self.toolkit.resolve(&call.selector, is_listed)
        };
        let entry = call.entry.take().map_or_else(resolve, Ok);
        let entry = entry.map_err(|error| tool_not_found(&call.selector, error))?;
        trail.tool = Some(entry.clone());
        if entry.tool.tasks == TaskSupport::Required
            && matches!(call.background, Background::Elsewhere)
            && self.hands_over(&entry.tool)
        {
            return Err(Rejection::RequiresTask);
        }
        if !self.auth.allows(&caller, &entry) {
            let tool = entry.id.to_string();
            return Err(Rejection::NotAllowed { tool });
        }
        let scopes = self
            .auth
            .missing_scopes(&caller, &entry.tool, &self.toolkit);
        if let Some(scopes) = scopes {
            let tool = entry.id.to_string();
            return Err(Rejection::InsufficientScope { tool, scopes });
        }
        let execution = Box::new(Execution {
            engine: Arc::clone(self),
            entry,
            id,
            has_client_id: call.call_id.is_some(),
            arrival,
            caller,
            background: std::mem::take(&mut call.background),
            follower: call.follower.take(),
            spans,
        });
        let valid = ResolvedCall { call, execution }.validate()?;
        let (prepared, cache) = valid.prepare().await;
        trail.cache = cache;
        let outcome = prepared?.run_once().await?;
        if self.shows_calls
            && let Ok(output) = &outcome.result
        {
            let output = serde_json::to_string(output).unwrap_or_default();
            tracing::info!(output, "returned");
        }
        Ok(outcome)
    }

    /// Returns true if lists show this tool to the caller.
    pub(crate) fn is_listed(&self, entry: &ToolEntry, caller: &Caller) -> bool {
        !self.lists_callable || self.auth.may_call(caller, entry)
    }

    /// Returns the header in which calls bring this secret, if they do.
    fn header_of(&self, secret: &str) -> Option<&HeaderName> {
        let mut headers = self.secret_headers.iter();
        headers.find_map(|(id, name)| (id == secret).then_some(name))
    }

    /// Takes the secrets out of the headers of a call's request. One that comes twice, or is not text,
    /// is none.
    pub(crate) fn take_secrets(&self, call: &mut Call, headers: &HeaderMap) {
        let secrets = &mut call.client_context.secrets;
        for (id, name) in &self.secret_headers {
            let mut values = headers.get_all(name).iter();
            let only = values.next().filter(|_| values.next().is_none());
            let text = only.and_then(|it| it.to_str().ok());
            if let Some(text) = text.filter(|it| !it.is_empty()) {
                secrets.insert(id.clone(), text.into());
            } else if !self.secrets.may_come_from_calls() {
                secrets.remove(id);
            }
        }
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.is_healthy
            .as_ref()
            .is_none_or(|is_healthy| is_healthy())
    }
}

impl Call {
    /// Creates a call with only an input.
    pub(crate) fn new(selector: Selector, input: Value) -> Self {
        Self {
            selector,
            entry: None,
            call_id: None,
            trace_id: None,
            input,
            client_context: ClientContext::default(),
            background: Background::default(),
            follower: None,
            room: None,
        }
    }

    /// Creates a call of the newest version of a tool.
    pub(crate) fn of_newest(entry: &ToolEntry, call_id: Option<String>, input: Value) -> Box<Self> {
        let selector = Selector {
            qualified: entry.id.shared(),
            version: None,
        };
        Box::new(Self {
            call_id,
            ..Self::new(selector, input)
        })
    }

    /// Restricts the call to the users for whom its caller may call.
    fn restrict_to(&mut self, users: PermittedUsers<'_>) -> Result<(), Rejection> {
        let requested = self.client_context.user_id.as_deref();
        let detail = match (users, requested) {
            (PermittedUsers::Only(user), _) if user.len() > LONGEST_ID => {
                "The token's user is too long for a user id."
            }
            (PermittedUsers::Only(user), None) => {
                self.client_context.user_id = Some(user.to_owned());
                return Ok(());
            }
            (PermittedUsers::Only(user), Some(requested)) if requested != user => {
                "'context.user_id' is not the token's user."
            }
            (PermittedUsers::None, Some(_)) => "'context.user_id' requires a token of that user.",
            _ => return Ok(()),
        };
        Err(Rejection::WrongUser(detail))
    }
}

impl Execution {
    /// Returns true if the call runs elsewhere, and not yet.
    fn is_handed_over(&self) -> bool {
        matches!(self.background, Background::Elsewhere | Background::Task)
            && self.engine.hands_over(&self.entry.tool)
    }

    /// Returns the time left for the call: its tool's limit, counted from the call's arrival, and
    /// no longer than the platform waits.
    fn time_left(&self) -> Duration {
        let clock = &self.engine.clock;
        let default = match self.background {
            Background::Started(_) => DEFAULT_LIMIT,
            _ => DEFAULT_TIMEOUT,
        };
        let limit = self.entry.tool.timeout.unwrap_or(default);
        let elapsed = clock.instant().saturating_duration_since(self.arrival.at);
        let limit = limit.min(LONGEST_TIMEOUT).saturating_sub(elapsed);
        let left = self.arrival.invocation.time_left(clock.now());
        left.map_or(limit, |left| left.min(limit))
    }
}

fn tool_not_found(selector: &Selector, error: ToolNotFound) -> Rejection {
    let qualified = Arc::clone(&selector.qualified);
    match error {
        ToolNotFound::Tool { closest } => Rejection::UnknownTool { qualified, closest },
        ToolNotFound::Version { version, available } => Rejection::UnknownVersion {
            qualified,
            version,
            available,
        },
    }
}
