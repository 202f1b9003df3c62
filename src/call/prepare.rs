//! Gathering what a tool requires: from the call, and from the server's own store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
    time::Duration,
};

use super::{
    ClientContext, Execution, Rejection, rejection::UnmetRequirements, validate::ValidatedCall,
};
use crate::{
    Context, Requirements, Secret, StoreError,
    secrets::CacheUse,
    tool::{PreparedRun as Run, context, requirement::Challenge},
};

/// What a tool declared, as far as it was found.
#[derive(Default)]
pub(super) struct RequirementValues {
    pub(super) tokens: BTreeMap<String, Secret>,
    secrets: BTreeMap<String, Secret>,
    /// The secrets that came from the store.
    stored: BTreeSet<String>,
    unreadable: Vec<(String, StoreError)>,
    /// The providers whose tokens the user has granted to this server.
    pub(super) granted: BTreeSet<String>,
    /// One for each provider whose token is missing, where users can be asked.
    pub(super) challenges: Vec<Challenge>,
    pub(super) needs_user: bool,
    cache: CacheUse,
}

/// A call that has all its tool needs.
pub(super) struct PreparedCall {
    pub(super) execution: Box<Execution>,
    pub(super) user_id: Option<String>,
    pub(super) trace_id: Option<String>,
    pub(super) run: Run,
    pub(super) fingerprint: Option<String>,
    pub(super) gathered: RequirementValues,
}

impl ValidatedCall {
    /// Gathers what the tool requires, and only that: all that is missing is said in one answer.
    pub(super) async fn prepare(self) -> (Result<PreparedCall, Rejection>, CacheUse) {
        let Self {
            execution,
            mut given,
            trace_id,
            run,
            fingerprint,
        } = self;
        let mut gathered = RequirementValues::default();
        let found = execution.gather(&mut given, &mut gathered).await;
        let cache = gathered.cache;
        let prepared = found.map(|()| PreparedCall {
            execution,
            user_id: given.user_id,
            trace_id,
            run,
            fingerprint,
            gathered,
        });
        (prepared, cache)
    }
}

impl Execution {
    async fn gather(
        &self,
        given: &mut ClientContext,
        found: &mut RequirementValues,
    ) -> Result<(), Rejection> {
        let requirements = &self.entry.tool.requirements;
        for needed in &requirements.authorization {
            found.tokens.extend(given.tokens.remove_entry(&needed.id));
        }
        #[cfg(feature = "oauth")]
        self.ask_for_grants(given.user_id.as_deref(), found).await?;
        if !requirements.secrets.is_empty() {
            self.gather_secrets(given, found).await;
        }
        let user_id = found.needs_user || requirements.user_id && given.user_id.is_none();
        let missing = found.missing_of(requirements, user_id);
        if missing.is_empty() && found.unreadable.is_empty() {
            return Ok(());
        }
        let secrets = &self.engine.secrets;
        let location = |it: &crate::SecretRequirement| secrets.location(&it.id);
        Err(Rejection::Missing(Box::new(UnmetRequirements {
            tool: self.entry.id.to_string(),
            locations: missing.secrets.iter().map(location).collect(),
            requirements: missing,
            challenges: std::mem::take(&mut found.challenges),
            from_calls: secrets.may_come_from_calls(),
            unreadable: std::mem::take(&mut found.unreadable),
        })))
    }

    async fn gather_secrets(&self, given: &mut ClientContext, found: &mut RequirementValues) {
        let store = &self.engine.secrets;
        let from_calls = store.may_come_from_calls();
        let mut wanted = Vec::new();
        for needed in &self.entry.tool.requirements.secrets {
            let id = &*needed.id;
            match given.secrets.remove_entry(id).filter(|_| from_calls) {
                Some((id, secret)) => drop(found.secrets.insert(id, secret)),
                None => wanted.push(id),
            }
        }
        if wanted.is_empty() {
            return;
        }
        let left = Some(self.time_left());
        let reads = store.counted(&wanted, left, &mut found.cache).await;
        for (id, read) in wanted.into_iter().zip(reads) {
            match read {
                Ok(Some(secret)) => {
                    found.secrets.insert(id.to_owned(), secret);
                    found.stored.insert(id.to_owned());
                }
                Ok(None) => {}
                Err(error) => found.unreadable.push((id.to_owned(), error)),
            }
        }
    }
}

impl RequirementValues {
    /// What the tool gets to see of its call.
    pub(super) fn context(
        self,
        execution: &Execution,
        user_id: Option<String>,
        trace_id: Option<String>,
        limit: Duration,
    ) -> Context {
        let clock = &execution.engine.clock;
        Context::from(context::ContextInner {
            call_id: execution.id.as_str().to_owned(),
            trace_id,
            caller: execution.caller.clone(),
            user_id,
            tokens: self.tokens,
            granted: self.granted,
            secrets: self.secrets,
            store: context::SecretSource::new(&execution.engine.secrets, self.stored),
            redaction: OnceLock::new(),
            now: clock.now(),
            stops_at: clock.instant() + limit,
            clock: clock.clone(),
        })
    }

    /// Copies only what is missing: nothing, for most calls.
    fn missing_of(&self, requirements: &Requirements, user_id: bool) -> Requirements {
        let is_unreadable = |id: &str| self.unreadable.iter().any(|(it, _)| it == id);
        let authorization = requirements.authorization.iter();
        let secrets = requirements.secrets.iter();
        Requirements {
            authorization: authorization
                .filter(|needed| !self.tokens.contains_key(&needed.id))
                .cloned()
                .collect(),
            secrets: secrets
                .filter(|needed| {
                    !self.secrets.contains_key(&needed.id) && !is_unreadable(&needed.id)
                })
                .cloned()
                .collect(),
            user_id,
        }
    }
}
