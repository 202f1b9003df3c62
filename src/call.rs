//! A call on its way: `Call` → `Resolved` → `Valid` → `Ready` → `Outcome`.
//!
//! Each stage consumes the one before it, so that leaving one out does not compile: nothing that
//! was not validated can run, nothing that lacks a secret can start.

mod run;

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    Context, Requirements, Secret, Toolkit, context,
    host::{Host, Invocation},
    id::Selector,
    rejection::Rejection,
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
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

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
    pub(crate) fn ready(self, host: Host, invocation: &Invocation) -> Result<Ready<'a>, Rejection> {
        let Self {
            call,
            entry,
            prepared,
        } = self;
        let mut given = call.given;
        let requirements = &entry.tool.requirements;
        let missing = missing(requirements, &given);
        if !missing.is_empty() {
            return Err(Rejection::Missing {
                tool: entry.id.to_string(),
                missing,
            });
        }
        let declared = |ids: Vec<&String>, from: &mut BTreeMap<String, Secret>| {
            let pick = |id: &String| from.remove_entry(id);
            ids.into_iter().filter_map(pick).collect()
        };
        let providers = requirements.authorization.iter().map(|a| &a.id).collect();
        let secrets = requirements.secrets.iter().map(|s| &s.id).collect();
        let tokens = declared(providers, &mut given.tokens);
        let secrets = declared(secrets, &mut given.secrets);

        let now = (host.wall)();
        let limit = entry
            .tool
            .timeout
            .unwrap_or(DEFAULT_TIMEOUT)
            .min(LONGEST_TIMEOUT);
        let limit = invocation
            .time_left(now)
            .map_or(limit, |left| left.min(limit));
        let started = (host.instant)();
        let call_id = call.call_id.unwrap_or_else(|| (host.id)().to_string());
        let context = Context::from(context::Inner {
            call_id: call_id.clone(),
            trace_id: call.trace_id,
            user_id: given.user_id,
            tokens,
            secrets,
            now,
            instant: host.instant,
            stops_at: started + limit,
        });
        Ok(Ready {
            call_id,
            entry,
            running: prepared(context),
            started,
            limit,
            instant: host.instant,
        })
    }
}

/// Copies only what is missing: nothing, for most calls.
fn missing(requirements: &Requirements, given: &Given) -> Requirements {
    let authorization = requirements.authorization.iter();
    let secrets = requirements.secrets.iter();
    Requirements {
        authorization: authorization
            .filter(|needed| !given.tokens.contains_key(&needed.id))
            .cloned()
            .collect(),
        secrets: secrets
            .filter(|needed| !given.secrets.contains_key(&needed.id))
            .cloned()
            .collect(),
        user_id: requirements.user_id && given.user_id.is_none(),
    }
}

/// A call that has all its tool needs.
pub(crate) struct Ready<'a> {
    call_id: String,
    entry: &'a Entry,
    running: Running,
    started: Instant,
    limit: Duration,
    instant: fn() -> Instant,
}
