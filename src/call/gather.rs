//! Gathering what a tool requires: from the call, and from the server's own store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::{
    Around, Call,
    rejection::{Missing, Rejection},
    time_left,
};
use crate::{
    Caller, Context, Requirements, Secret, StoreError,
    authorization::Asking,
    clock::Host,
    observe::metrics::CacheUse,
    secrets::SecretCache,
    tool::{context, requirement::Challenge, toolkit::Entry},
};

/// What a tool declared, found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) tokens: BTreeMap<String, Secret>,
    pub(super) secrets: BTreeMap<String, Secret>,
    /// Which of the secrets came from the store.
    pub(super) stored: BTreeSet<String>,
    unreadable: Vec<(String, StoreError)>,
    /// The providers whose tokens the user has granted to this server.
    pub(super) granted: BTreeSet<String>,
}

/// What the user is asked for.
#[derive(Default)]
struct Asked {
    challenges: Vec<Challenge>,
    needs_user: bool,
}

impl Call {
    /// All that is missing is said in one answer.
    pub(super) async fn gather(
        &mut self,
        entry: &Entry,
        around: &Around,
        cache: &mut CacheUse,
    ) -> Result<Found, Rejection> {
        let requirements = &entry.tool.requirements;
        let mut found = Found::default();
        for needed in &requirements.authorization {
            found
                .tokens
                .extend(self.given.tokens.remove_entry(&needed.id));
        }
        let asked = self.ask_for_grants(&mut found, entry, around).await?;
        if !requirements.secrets.is_empty() {
            self.gather_secrets(&mut found, entry, around, cache).await;
        }
        let user_id = asked.needs_user || requirements.user_id && self.given.user_id.is_none();
        let missing = found.missing_of(requirements, user_id);
        if missing.is_empty() && found.unreadable.is_empty() {
            return Ok(found);
        }
        let place = |it: &crate::SecretRequirement| around.secrets.place(&it.id);
        Err(Rejection::Missing(Box::new(Missing {
            tool: entry.id.to_string(),
            places: missing.secrets.iter().map(place).collect(),
            requirements: missing,
            challenges: asked.challenges,
            from_calls: around.secrets.may_come_from_calls(),
            unreadable: found.unreadable,
        })))
    }

    /// The tokens that users have allowed, and challenges for the others.
    async fn ask_for_grants(
        &self,
        found: &mut Found,
        entry: &Entry,
        around: &Around,
    ) -> Result<Asked, Rejection> {
        let mut asked = Asked::default();
        let Some(desk) = &around.desk else {
            return Ok(asked);
        };
        let needed = entry.tool.requirements.authorization.iter();
        let needed = needed.filter(|needed| desk.knows(&needed.id));
        for need in needed {
            if found.tokens.contains_key(&need.id) {
                continue;
            }
            let Some(user) = self
                .given
                .user_id
                .as_deref()
                .filter(|user| !user.is_empty())
            else {
                asked.needs_user = true;
                continue;
            };
            let caller = around.caller.namespace();
            let asking = Asking {
                caller: &caller,
                user,
                need,
                base: around.arrival.invocation.base_url.as_deref(),
                left: time_left(entry, &around.arrival, &around.host),
            };
            let token = bounded(asking.left * 2 / 3, desk.token(asking)).await?;
            if let Some(token) = token {
                found.granted.insert(need.id.clone());
                found.tokens.insert(need.id.clone(), token);
                continue;
            }
            let challenge = bounded(asking.left / 4, desk.challenge(asking)).await?;
            asked.challenges.push(challenge);
        }
        Ok(asked)
    }

    async fn gather_secrets(
        &mut self,
        found: &mut Found,
        entry: &Entry,
        around: &Around,
        cache: &mut CacheUse,
    ) {
        let needed = entry.tool.requirements.secrets.iter().map(|it| &*it.id);
        let mut wanted = Vec::new();
        for id in needed {
            let given = around.secrets.may_come_from_calls();
            let given = given.then(|| self.given.secrets.remove_entry(id)).flatten();
            match given {
                Some((id, secret)) => drop(found.secrets.insert(id, secret)),
                None => wanted.push(id),
            }
        }
        if wanted.is_empty() {
            return;
        }
        let left = time_left(entry, &around.arrival, &around.host);
        let reads = around.secrets.counted(&wanted, Some(left), cache).await;
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

/// An answer has to leave, whatever is slow.
pub(super) async fn bounded<T>(
    limit: Duration,
    doing: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Rejection> {
    let done = tokio::time::timeout(limit, doing).await;
    let done = done.unwrap_or_else(|_| Err(StoreError::no_answer(limit)));
    done.map_err(Rejection::Unauthorizable)
}

impl Found {
    /// What the tool gets to see of its call.
    pub(super) fn context(
        self,
        call: Call,
        call_id: String,
        caller: Caller,
        store: &Arc<SecretCache>,
        host: &Host,
        limit: Duration,
    ) -> Context {
        Context::from(context::Inner {
            call_id,
            trace_id: call.trace_id,
            caller,
            user_id: call.given.user_id,
            tokens: self.tokens,
            granted: self.granted,
            secrets: self.secrets,
            store: context::Store::new(store, self.stored),
            redaction: OnceLock::new(),
            now: host.now(),
            stops_at: host.instant() + limit,
            host: host.clone(),
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
