//! The check of a call's input against its tool's schema, and its decoding.

use std::panic::{self, AssertUnwindSafe};

use super::{Call, ClientContext, Execution, Rejection};
use serde_json::Value;

use crate::{
    Caller, Secret,
    idempotency::{CallIdentity, fingerprint_of},
    observe::confidential,
    tool::{parts::Run, repeats::RepeatPolicy},
};

/// A call whose tool is known.
pub(super) struct ResolvedCall {
    pub(super) call: Box<Call>,
    pub(super) execution: Box<Execution>,
}

/// A call whose input is valid.
pub(super) struct ValidatedCall {
    pub(super) execution: Box<Execution>,
    pub(super) client_context: ClientContext,
    pub(super) trace_id: Option<String>,
    /// The tool's run, with its input decoded.
    pub(super) run: Run,
    /// The identity of the call, if it is deduplicated.
    pub(super) identity: Option<CallIdentity>,
    /// The call, if it is handed over.
    pub(super) stored: Option<Vec<u8>>,
}

impl ValidatedCall {
    pub(super) fn user(&self) -> Option<&str> {
        self.client_context.user_id.as_deref()
    }
}

impl ResolvedCall {
    /// Checks the input against the tool's schema and decodes it, which may panic, just as the tool
    /// may.
    pub(super) fn validate(self) -> Result<ValidatedCall, Rejection> {
        let entry = self.execution.entry.clone();
        let result = panic::catch_unwind(AssertUnwindSafe(|| {
            confidential::decoding(|| self.validate_input())
        }));
        result.unwrap_or_else(|_| {
            Err(Rejection::Misdefined {
                tool: entry.id.to_string(),
                detail: "Decoding its input panicked; see the log.".to_owned(),
            })
        })
    }

    fn validate_input(self) -> Result<ValidatedCall, Rejection> {
        let Self { call, execution } = self;
        let call = *call;
        let (entry, mut input) = (&execution.entry, call.input);
        let schema = &entry.tool.input;
        schema.drop_optional_nulls(&mut input);
        let result = schema.check(&input, "input");
        let result = result.map_err(|detail| Rejection::Misdefined {
            tool: entry.id.to_string(),
            detail: detail.to_owned(),
        });
        result?.map_err(Rejection::InvalidInput)?;
        schema.normalize(&mut input);
        // Computed before decoding, which consumes the input.
        let identity = execution.identity(&input, &call.client_context);
        let stored = execution.stored(&input, call.trace_id.as_deref(), &call.client_context);
        let run = entry.tool.decode(input);
        let run = run.map_err(Rejection::InvalidInput)?;
        Ok(ValidatedCall {
            execution,
            client_context: call.client_context,
            trace_id: call.trace_id,
            run,
            identity,
            stored,
        })
    }
}

impl Execution {
    /// Returns the identity of the call, if it is deduplicated.
    fn identity(&self, input: &Value, context: &ClientContext) -> Option<CallIdentity> {
        let tool = &self.entry.tool;
        let window = tool.once_within.filter(|_| !self.has_client_id);
        let is_recorded = self.has_client_id && tool.policy != RepeatPolicy::Idempotent;
        let is_claimed = is_recorded || window.is_some() || self.is_handed_over();
        if !self.engine.deduplication.is_on() || !is_claimed {
            return None;
        }
        let (user, tool) = (context.user_id.as_deref(), &self.entry.id);
        let id = window.map_or(&*self.id, |_| "");
        let fingerprint = fingerprint_of(tool, user, input, id, &self.credentials(context));
        Some(match window {
            Some(window) => CallIdentity::of_equals(&self.caller, tool, fingerprint, window),
            None => CallIdentity::new(&self.caller, tool, id, fingerprint),
        })
    }

    /// Returns the tokens and secrets that the call carries for its tool. They are part of the
    /// call's identity: a caller with other credentials must not get this call's outcome. If an
    /// authenticated caller names the user, the user identifies the call instead of the
    /// credentials, so that a token may be refreshed between two attempts; but not instead of secrets
    /// in headers, which may be those of several customers.
    fn credentials<'a>(&'a self, context: &'a ClientContext) -> Vec<(&'a str, &'a Secret)> {
        let user = context.user_id.as_ref();
        let names_user = user.is_some_and(|user| !user.is_empty());
        let is_identified = names_user && self.caller != Caller::Anyone;
        let engine = &self.engine;
        if is_identified && engine.secret_headers.is_empty() {
            return Vec::new();
        }
        let requirements = &self.entry.tool.requirements;
        let tokens = requirements.authorization.iter().map(|it| &*it.id);
        let tokens = tokens.filter(|_| !is_identified);
        let tokens = tokens.filter_map(|id| Some((id, context.tokens.get(id)?)));
        let takes_secrets = !is_identified && engine.secrets.may_come_from_calls();
        let secrets = requirements.secrets.iter().map(|it| &*it.id);
        let secrets = secrets.filter(|id| takes_secrets || engine.header_of(id).is_some());
        let secrets = secrets.filter_map(|id| Some((id, context.secrets.get(id)?)));
        tokens.chain(secrets).collect()
    }
}
