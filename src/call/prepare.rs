//! The values that a tool requires, from the call, the user's grants and the server's own store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
    time::Duration,
};

use super::{
    ClientContext, Execution, Rejection,
    rejection::{SecretPlace, UnmetRequirements},
    validate::ValidatedCall,
};
use crate::{
    Challenge, Context, Requirements, Secret, StoreError,
    secrets::CacheUse,
    tool::context::{ContextInner, SecretSource},
};

/// The available values of a tool's requirements.
#[derive(Default)]
pub(super) struct RequirementValues {
    pub(super) tokens: BTreeMap<String, Secret>,
    secrets: BTreeMap<String, Secret>,
    /// The secrets that came from the store.
    stored: BTreeSet<String>,
    unreadable: Vec<(String, StoreError)>,
    /// The providers whose tokens come from grants that the user has given to this server.
    pub(super) granted_providers: BTreeSet<String>,
    /// One challenge for each provider whose token is missing, if users can be challenged.
    pub(super) challenges: Vec<Challenge>,
    pub(super) needs_user: bool,
    cache: CacheUse,
}

/// A call that has everything its tool needs.
pub(super) struct PreparedCall {
    pub(super) valid: ValidatedCall,
    pub(super) values: RequirementValues,
}

impl ValidatedCall {
    /// Gathers what the tool requires, and nothing else. If anything is missing, one response
    /// reports all of it.
    pub(super) async fn prepare(mut self) -> (Result<PreparedCall, Rejection>, CacheUse) {
        let mut values = RequirementValues::default();
        let context = &mut self.client_context;
        let result = self.execution.gather(context, &mut values).await;
        let cache = values.cache;
        let valid = self;
        (result.map(|()| PreparedCall { valid, values }), cache)
    }
}

impl Execution {
    async fn gather(
        &self,
        context: &mut ClientContext,
        values: &mut RequirementValues,
    ) -> Result<(), Rejection> {
        let requirements = &self.entry.tool.requirements;
        for need in &requirements.authorization {
            values.tokens.extend(context.tokens.remove_entry(&need.id));
        }
        #[cfg(feature = "oauth")]
        self.gather_grants(context.user_id.as_deref(), values)
            .await?;
        if !requirements.secrets.is_empty() {
            self.gather_secrets(context, values).await;
        }
        let user_id = values.needs_user || requirements.user_id && context.user_id.is_none();
        let missing = values.missing(requirements, user_id);
        if missing.is_empty() && values.unreadable.is_empty() {
            return Ok(());
        }
        let secrets = &self.engine.secrets;
        let location = |it: &crate::SecretRequirement| match self.engine.header_of(&it.id) {
            Some(name) => SecretPlace::Header(name.clone()),
            None => SecretPlace::Store(secrets.location(&it.id)),
        };
        Err(Rejection::Missing(Box::new(UnmetRequirements {
            tool: self.entry.id.to_string(),
            places: missing.secrets.iter().map(location).collect(),
            requirements: missing,
            challenges: std::mem::take(&mut values.challenges),
            from_calls: secrets.may_come_from_calls(),
            unreadable: std::mem::take(&mut values.unreadable),
        })))
    }

    async fn gather_secrets(&self, context: &mut ClientContext, values: &mut RequirementValues) {
        let store = &self.engine.secrets;
        let from_calls = store.may_come_from_calls();
        let mut stored_ids = Vec::new();
        for need in &self.entry.tool.requirements.secrets {
            let id = &*need.id;
            let has_header = self.engine.header_of(id).is_some();
            let sent = context.secrets.remove_entry(id);
            match sent.filter(|_| from_calls || has_header) {
                Some((id, secret)) => drop(values.secrets.insert(id, secret)),
                None if has_header => {}
                None => stored_ids.push(id),
            }
        }
        if stored_ids.is_empty() {
            return;
        }
        let left = Some(self.time_left());
        let reads = store
            .read_counted(&stored_ids, left, &mut values.cache)
            .await;
        for (id, read) in stored_ids.into_iter().zip(reads) {
            match read {
                Ok(Some(secret)) => {
                    values.secrets.insert(id.to_owned(), secret);
                    values.stored.insert(id.to_owned());
                }
                Ok(None) => {}
                Err(error) => values.unreadable.push((id.to_owned(), error)),
            }
        }
    }
}

impl RequirementValues {
    /// Creates the tool's view of its call.
    pub(super) fn context(
        self,
        execution: &Execution,
        client_context: ClientContext,
        trace_id: Option<String>,
        limit: Duration,
    ) -> Context {
        let clock = &execution.engine.clock;
        let stored = self.stored;
        let store = (!stored.is_empty())
            .then(|| SecretSource::new(execution.engine.secrets.rereads(), stored));
        Context::from(ContextInner {
            call_id: execution.id.clone(),
            trace_id,
            caller: execution.caller.clone(),
            user_id: client_context.user_id,
            tokens: self.tokens,
            granted_providers: self.granted_providers,
            secrets: self.secrets,
            answers: client_context.answers,
            store,
            follower: execution.follower.clone(),
            redaction: OnceLock::new(),
            now: clock.now(),
            stops_at: clock.instant() + limit,
            clock: clock.clone(),
        })
    }

    /// Clones only the missing requirements: none, for most calls.
    fn missing(&self, requirements: &Requirements, user_id: bool) -> Requirements {
        let mut missing = Requirements::default();
        let is_unreadable = |id: &str| self.unreadable.iter().any(|(it, _)| it == id);
        let authorization = requirements.authorization.iter();
        let secrets = requirements.secrets.iter();
        missing.authorization = authorization
            .filter(|need| !self.tokens.contains_key(&need.id))
            .cloned()
            .collect();
        missing.secrets = secrets
            .filter(|need| !self.secrets.contains_key(&need.id) && !is_unreadable(&need.id))
            .cloned()
            .collect();
        missing.user_id = user_id;
        missing
    }
}
