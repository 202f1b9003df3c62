//! What users have allowed: their tokens, challenges for those that are missing, and new ones in the
//! place of a failure that says that a token was refused.

use std::{sync::Arc, time::Duration};

use super::{
    Engine, Outcome, Rejection,
    execution::Execution,
    prepare::{PreparedCall, RequirementValues},
    rejection::UnmetRequirements,
};
use crate::{
    AuthorizationRequirement, Requirements, Secret, StoreError,
    arrival::Arrival,
    oauth::{Broker, GrantRequest},
    tool::toolkit::SelectedTool,
};

/// How long each of the two steps may take, after the tool has had its time.
const LEFT: Duration = Duration::from_millis(800);

/// What it takes to challenge the user anew, after a token of theirs was refused.
pub(super) struct RefusedGrant {
    engine: Arc<Engine>,
    broker: Arc<Broker>,
    entry: SelectedTool,
    arrival: Arrival,
    caller: String,
    user: String,
    /// The tokens that come from what the user has allowed.
    tokens: Vec<(AuthorizationRequirement, Secret)>,
}

impl Execution {
    /// The tokens that users have allowed, and challenges for the others.
    pub(super) async fn ask_for_grants(
        &self,
        user: Option<&str>,
        found: &mut RequirementValues,
    ) -> Result<(), Rejection> {
        let Some(broker) = &self.engine.broker else {
            return Ok(());
        };
        let needed = self.entry.tool.requirements.authorization.iter();
        for need in needed.filter(|needed| broker.knows(&needed.id)) {
            if found.tokens.contains_key(&need.id) {
                continue;
            }
            let Some(user) = user.filter(|user| !user.is_empty()) else {
                found.needs_user = true;
                continue;
            };
            let caller = self.caller.namespace();
            let asking = GrantRequest {
                caller: &caller,
                user,
                need,
                base: self.arrival.invocation.base_url.as_deref(),
                left: self.time_left(),
            };
            let token = bounded(asking.left * 2 / 3, broker.token(asking)).await?;
            if let Some(token) = token {
                found.granted.insert(need.id.clone());
                found.tokens.insert(need.id.clone(), token);
                continue;
            }
            let challenge = bounded(asking.left / 4, broker.challenge(asking)).await?;
            found.challenges.push(challenge);
        }
        Ok(())
    }
}

impl PreparedCall {
    pub(super) fn regrant(&self) -> Option<RefusedGrant> {
        let (execution, gathered) = (&self.execution, &self.gathered);
        let broker = execution.engine.broker.as_ref()?;
        let needs = execution.entry.tool.requirements.authorization.iter();
        let granted = needs.filter(|need| gathered.granted.contains(&need.id));
        let token = |need: &AuthorizationRequirement| {
            Some((need.clone(), gathered.tokens.get(&need.id)?.clone()))
        };
        let tokens: Vec<_> = granted.filter_map(token).collect();
        (!tokens.is_empty()).then(|| RefusedGrant {
            engine: Arc::clone(&execution.engine),
            broker: Arc::clone(broker),
            entry: execution.entry.clone(),
            arrival: execution.arrival.clone(),
            caller: execution.caller.namespace(),
            user: self.user_id.clone().unwrap_or_default(),
            tokens,
        })
    }
}

impl RefusedGrant {
    /// The outcome, unless it says that a token of the user's was refused.
    pub(super) async fn instead_of(self, outcome: Outcome) -> Result<Outcome, Rejection> {
        let refused = outcome.result.as_ref().err();
        let refused = refused.and_then(|failure| failure.parts().refused.as_deref());
        let of_refused = |id| self.tokens.iter().find(|(need, _)| need.id == id);
        let Some((need, token)) = refused.and_then(of_refused) else {
            return Ok(outcome);
        };
        let invocation = &self.arrival.invocation;
        let left = invocation.time_left(self.engine.clock.now());
        let each = left.map_or(LEFT, |left| LEFT.min(left / 2));
        let refused = self
            .broker
            .refused(&self.caller, &self.user, &need.id, token);
        let forgotten = bounded(each, refused).await;
        if !forgotten.unwrap_or(false) {
            // There is a newer token, with which the same call may succeed; or the failure has to
            // do, which says that the token is refused.
            return Ok(outcome);
        }
        let asking = GrantRequest {
            caller: &self.caller,
            user: &self.user,
            need,
            base: invocation.base_url.as_deref(),
            left: each,
        };
        let challenge = bounded(each, self.broker.challenge(asking)).await?;
        let mut requirements = Requirements::default();
        requirements.authorization.push(need.clone());
        Err(Rejection::Missing(Box::new(UnmetRequirements {
            tool: self.entry.id.to_string(),
            requirements,
            challenges: vec![challenge],
            from_calls: self.engine.secrets.may_come_from_calls(),
            locations: Vec::new(),
            unreadable: Vec::new(),
        })))
    }
}

/// An answer has to leave, whatever is slow.
async fn bounded<T>(
    limit: Duration,
    doing: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Rejection> {
    let done = tokio::time::timeout(limit, doing).await;
    let done = done.unwrap_or_else(|_| Err(StoreError::no_answer(limit)));
    done.map_err(Rejection::Unauthorizable)
}
