//! Users' grants: their tokens, challenges for missing tokens, and a new challenge in place of a
//! failure that reports a rejected token.

use std::time::Duration;

use super::{
    Execution, Outcome, Rejection,
    prepare::{PreparedCall, RequirementValues},
    rejection::UnmetRequirements,
};
use crate::{AuthorizationRequirement, Requirements, Secret, StoreError, oauth::GrantRequest};

/// The time limit of each of the two steps that follow the tool's run, which may have used up the
/// call's time.
const STEP_LIMIT: Duration = Duration::from_millis(800);

/// Everything needed to challenge the user again, should a provider reject their token.
pub(super) struct Reauthorization {
    execution: Execution,
    user: String,
    /// The tokens that come from the user's grants.
    tokens: Vec<(AuthorizationRequirement, Secret)>,
}

impl Execution {
    /// Gathers the tokens that the user has granted, and creates challenges for the missing ones.
    pub(super) async fn gather_grants(
        &self,
        user: Option<&str>,
        values: &mut RequirementValues,
    ) -> Result<(), Rejection> {
        let Some(broker) = &self.engine.broker else {
            return Ok(());
        };
        for need in &self.entry.tool.requirements.authorization {
            if values.tokens.contains_key(&need.id)
                || !with_limit(self.time_left() / 3, broker.provides(need)).await?
            {
                continue;
            }
            let Some(user) = user.filter(|user| !user.is_empty()) else {
                values.needs_user = true;
                continue;
            };
            let caller = self.caller.namespace();
            let request = GrantRequest {
                caller: &caller,
                user,
                need,
                base: self.arrival.invocation.base_url.as_deref(),
                left: self.time_left(),
            };
            let token = with_limit(request.left * 2 / 3, broker.token(request)).await?;
            if let Some(token) = token {
                values.granted_providers.insert(need.id.clone());
                values.tokens.insert(need.id.clone(), token);
                continue;
            }
            let challenge = with_limit(request.left / 4, broker.challenge(request)).await?;
            values.challenges.push(challenge);
        }
        Ok(())
    }
}

impl PreparedCall {
    pub(super) fn reauthorization(&self) -> Option<Reauthorization> {
        let (execution, values) = (&self.valid.execution, &self.values);
        let needs = execution.entry.tool.requirements.authorization.iter();
        let granted = needs.filter(|need| values.granted_providers.contains(&need.id));
        let token = |need: &AuthorizationRequirement| {
            Some((need.clone(), values.tokens.get(&need.id)?.clone()))
        };
        let tokens: Vec<_> = granted.filter_map(token).collect();
        (!tokens.is_empty()).then(|| Reauthorization {
            execution: Execution::clone(execution),
            user: self.valid.user().unwrap_or_default().to_owned(),
            tokens,
        })
    }
}

impl Reauthorization {
    /// Returns the outcome, or a challenge if the outcome reports that one of the user's tokens was
    /// rejected.
    pub(super) async fn challenge_instead_of(self, outcome: Outcome) -> Result<Outcome, Rejection> {
        let failure = outcome.result.as_ref().err();
        let provider = failure.and_then(|failure| failure.parts().rejected_provider.as_deref());
        let token_of = |id| self.tokens.iter().find(|(need, _)| need.id == id);
        let (engine, caller) = (&self.execution.engine, self.execution.caller.namespace());
        let rejected = provider.and_then(token_of).zip(engine.broker.as_ref());
        let Some(((need, token), broker)) = rejected else {
            return Ok(outcome);
        };
        let invocation = &self.execution.arrival.invocation;
        let left = invocation.time_left(engine.clock.now());
        let limit = left.map_or(STEP_LIMIT, |left| STEP_LIMIT.min(left / 2));
        let request = GrantRequest {
            caller: &caller,
            user: &self.user,
            need,
            base: invocation.base_url.as_deref(),
            left: limit,
        };
        let removal = broker.delete_rejected_grant(request, token);
        let is_removed = with_limit(limit, removal).await;
        if !is_removed.unwrap_or(false) {
            // Either there is a newer token, with which the same call may succeed, or the grant
            // could not be removed. The failure, which reports the rejected token, is enough in
            // both cases.
            return Ok(outcome);
        }
        let challenge = with_limit(limit, broker.challenge(request)).await?;
        let mut requirements = Requirements::default();
        requirements.authorization.push(need.clone());
        Err(Rejection::Missing(Box::new(UnmetRequirements {
            tool: self.execution.entry.id.to_string(),
            requirements,
            challenges: vec![challenge],
            ..UnmetRequirements::default()
        })))
    }
}

/// Limits the time of a step, so that the response is sent in time.
async fn with_limit<T>(
    limit: Duration,
    step: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Rejection> {
    let result = tokio::time::timeout(limit, step).await;
    let result = result.unwrap_or_else(|_| Err(StoreError::timed_out(limit)));
    result.map_err(Rejection::Unauthorizable)
}
