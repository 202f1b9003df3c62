//! A call on its way: `Call` → `Resolved` → `Valid` → `Ready` → `Outcome`.
//!
//! Each stage consumes the one before it, so that leaving one out does not compile: nothing that
//! was not validated can run, nothing that lacks a secret can start.

pub(crate) mod confidential;
mod gather;
mod run;

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;

use crate::{
    Caller, Context, Secret, Toolkit, context,
    host::{Host, Invocation},
    id::Selector,
    rejection::Rejection,
    secrets::SecretCache,
    tool::{Prepared, Running},
    toolkit::{Entry, NotFound},
};

pub(crate) use run::Outcome;

/// How long a tool may take unless it [says otherwise](crate::Tool::timeout).
///
/// API Gateway gives up after 29 seconds (REST APIs) or 30 (HTTP APIs); an answer of our own, which
/// says whether to retry, has to leave before that.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(28);

/// Longer than anything lets a call run; more would not be a point in time.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);

/// A call as it was asked for, in whichever protocol.
pub(crate) struct Call {
    pub(crate) selector: Selector,
    pub(crate) call_id: Option<String>,
    pub(crate) trace_id: Option<String>,
    pub(crate) input: Value,
    pub(crate) given: Given,
}

/// What the client gives besides the input.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) user_id: Option<String>,
    pub(crate) tokens: BTreeMap<String, Secret>,
    pub(crate) secrets: BTreeMap<String, Secret>,
}

impl Call {
    /// Finds the tool.
    pub(crate) fn resolve(self, toolkit: &Toolkit) -> Result<Resolved<'_>, Rejection> {
        match toolkit.resolve(&self.selector) {
            Ok(entry) => Ok(Resolved { call: self, entry }),
            Err(not_found) => Err(self.unresolved(not_found)),
        }
    }

    fn unresolved(self, not_found: NotFound) -> Rejection {
        let qualified = self.selector.qualified;
        match not_found {
            NotFound::Tool { closest } => Rejection::UnknownTool { qualified, closest },
            NotFound::Version { version, available } => Rejection::UnknownVersion {
                qualified,
                version,
                available,
            },
        }
    }
}

/// A call whose tool is known.
pub(crate) struct Resolved<'a> {
    call: Call,
    entry: &'a Entry,
}

impl<'a> Resolved<'a> {
    /// Checks the input against the tool's schema and decodes it.
    ///
    /// The types that do it are the tool's, and may panic like the tool itself.
    pub(crate) fn validate(self) -> Result<Valid<'a>, Rejection> {
        let entry = self.entry;
        panic::catch_unwind(AssertUnwindSafe(|| self.validated())).unwrap_or_else(|_| {
            Err(Rejection::Misdefined {
                tool: entry.id.to_string(),
                detail: "Its input type panicked; the log says where.".to_owned(),
            })
        })
    }

    fn validated(self) -> Result<Valid<'a>, Rejection> {
        let Self { mut call, entry } = self;
        let mut input = call.input.take();
        let schema = &entry.tool.input;
        match schema.check(&input, "input") {
            Ok(Ok(())) => schema.normalize(&mut input),
            Ok(Err(errors)) => return Err(Rejection::InvalidInput(errors)),
            Err(detail) => {
                return Err(Rejection::Misdefined {
                    tool: entry.id.to_string(),
                    detail: detail.to_owned(),
                });
            }
        }
        let prepared = entry.tool.prepare(input);
        let prepared = prepared.map_err(Rejection::InvalidInput)?;
        Ok(Valid {
            call,
            entry,
            prepared,
        })
    }
}

/// A call whose input is right.
pub(crate) struct Valid<'a> {
    call: Call,
    entry: &'a Entry,
    prepared: Prepared,
}

impl<'a> Valid<'a> {
    /// Gathers what the tool requires, and only that.
    pub(crate) async fn ready(self, around: Around<'_>) -> Result<Ready<'a>, Rejection> {
        let Self {
            mut call,
            entry,
            prepared,
        } = self;
        let found = call.gather(entry, &around).await?;
        let host = around.host;
        let now = (host.wall)();
        let limit = around.time_left(entry, now);
        let started = (host.instant)();
        let call_id = call.call_id.unwrap_or_else(|| (host.id)().to_string());
        let context = Context::from(context::Inner {
            call_id: call_id.clone(),
            trace_id: call.trace_id,
            caller: around.caller,
            user_id: call.given.user_id,
            tokens: found.tokens,
            secrets: found.secrets,
            store: context::Store::new(around.secrets, found.stored),
            now,
            instant: host.instant,
            stops_at: started + limit,
        });
        Ok(Ready {
            call_id,
            entry,
            running: prepared(context.clone()),
            context,
            started,
            limit,
            instant: host.instant,
        })
    }
}

/// What a call's surroundings add to it.
pub(crate) struct Around<'a> {
    pub(crate) host: Host,
    pub(crate) invocation: &'a Invocation,
    pub(crate) caller: Caller,
    pub(crate) secrets: &'a Arc<SecretCache>,
}

impl Around<'_> {
    /// How long the call may take from `now` on.
    fn time_left(&self, entry: &Entry, now: SystemTime) -> Duration {
        let limit = entry.tool.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let limit = limit.min(LONGEST_TIMEOUT);
        let left = self.invocation.time_left(now);
        left.map_or(limit, |left| left.min(limit))
    }
}

/// A call that has all its tool needs.
pub(crate) struct Ready<'a> {
    call_id: String,
    entry: &'a Entry,
    running: Running,
    context: Context,
    started: Instant,
    limit: Duration,
    instant: fn() -> Instant,
}
