//! Checking a call's input against its tool's schema, and decoding it.

use std::panic::{self, AssertUnwindSafe};

use super::{Call, ClientContext, Execution, Rejection};
use serde_json::Value;

use crate::{
    Caller, Secret,
    idempotency::fingerprint_of,
    tool::{PreparedRun as Run, repeats::RepeatPolicy, schema},
};

/// A call whose tool is known.
pub(super) struct ResolvedCall {
    pub(super) call: Box<Call>,
    pub(super) execution: Box<Execution>,
}

/// A call whose input is right.
pub(super) struct ValidatedCall {
    pub(super) execution: Box<Execution>,
    pub(super) given: ClientContext,
    pub(super) trace_id: Option<String>,
    /// The tool's run, its input decoded.
    pub(super) run: Run,
    /// A hash of what is asked for, where that matters.
    pub(super) fingerprint: Option<String>,
}

impl ResolvedCall {
    /// Checks the input against the tool's schema and decodes it.
    ///
    /// A large input is checked beside the workers, which go on serving others, and for no longer
    /// than the call may take.
    pub(super) async fn validate(mut self) -> Result<ValidatedCall, Rejection> {
        let Some(turn) = self.call.turn.take() else {
            return self.checked();
        };
        let limit = self.execution.time_left();
        let (checked, _turn) = turn.work(limit, move || self.checked()).await?;
        checked
    }

    /// The types that check are the tool's, and may panic like the tool itself.
    fn checked(self) -> Result<ValidatedCall, Rejection> {
        let entry = self.execution.entry.clone();
        let checked = panic::catch_unwind(AssertUnwindSafe(|| self.validated()));
        checked.unwrap_or_else(|_| {
            Err(Rejection::Misdefined {
                tool: entry.id.to_string(),
                detail: "Its input type panicked; the log says where.".to_owned(),
            })
        })
    }

    fn validated(self) -> Result<ValidatedCall, Rejection> {
        let Self { call, execution } = self;
        let call = *call;
        let (entry, mut input) = (&execution.entry, call.input);
        let schema = &entry.tool.input;
        let checked = schema.check(&input, "input");
        let checked = checked.map_err(|detail| Rejection::Misdefined {
            tool: entry.id.to_string(),
            detail: detail.to_owned(),
        });
        checked?.map_err(Rejection::InvalidInput)?;
        if !call.unkept_integers.is_empty() {
            let errors = schema::unkept(&call.unkept_integers);
            return Err(Rejection::InvalidInput(errors));
        }
        schema.normalize(&mut input);
        // Of the input as it came: decoding uses it up.
        let fingerprint = execution.fingerprint(&input, &call.given);
        let run = entry.tool.prepare(input);
        let run = run.map_err(Rejection::InvalidInput)?;
        Ok(ValidatedCall {
            execution,
            given: call.given,
            trace_id: call.trace_id,
            run,
            fingerprint,
        })
    }
}

impl Execution {
    /// A hash of what is asked for, where the call is remembered.
    fn fingerprint(&self, input: &Value, given: &ClientContext) -> Option<String> {
        let is_remembered =
            self.entry.tool.policy != RepeatPolicy::Idempotent && self.engine.deduplication.is_on();
        let call_id = self.id.given().filter(|_| is_remembered)?;
        let (user, credentials) = (given.user_id.as_deref(), self.credentials(given));
        Some(fingerprint_of(
            &self.entry.id,
            user,
            input,
            call_id,
            &credentials,
        ))
    }

    /// The tokens and secrets that the call brings for its tool, by which it is recognized: who
    /// sends others must not get what these have led to. Where a known caller names the user,
    /// the user is what counts, and a token that was refreshed between two tries is the same call.
    fn credentials<'a>(&'a self, given: &'a ClientContext) -> Vec<(&'a str, &'a Secret)> {
        let is_named = given.user_id.as_ref().is_some_and(|user| !user.is_empty());
        if is_named && self.caller != Caller::Anyone {
            return Vec::new();
        }
        let requirements = &self.entry.tool.requirements;
        let tokens = requirements.authorization.iter().map(|it| &*it.id);
        let tokens = tokens.filter_map(|id| Some((id, given.tokens.get(id)?)));
        let takes_secrets = self.engine.secrets.may_come_from_calls();
        let secrets = requirements.secrets.iter().map(|it| &*it.id);
        let secrets = secrets.filter(|_| takes_secrets);
        let secrets = secrets.filter_map(|id| Some((id, given.secrets.get(id)?)));
        tokens.chain(secrets).collect()
    }
}
