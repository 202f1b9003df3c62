//! A token that was refused where it belongs: a new challenge in the place of the failure.

use std::{sync::Arc, time::Duration};

use super::{
    Granted, Outcome,
    gather::bounded,
    rejection::{Missing, Rejection},
};
use crate::{
    Requirements,
    authorization::{Asking, Desk},
    secrets::SecretCache,
};

/// How long each of the two steps may take, after the tool has had its time.
const LEFT: Duration = Duration::from_millis(800);

impl Granted {
    /// The outcome, unless it says that a token of the user's was refused.
    pub(crate) async fn instead_of(
        self,
        outcome: Outcome,
        desk: &Arc<Desk>,
        base: Option<&str>,
        left: Option<Duration>,
        secrets: &SecretCache,
    ) -> Result<Outcome, Rejection> {
        let refused = outcome.result.as_ref().err();
        let refused = refused.and_then(|failure| failure.parts().refused.as_deref());
        let of_refused = |id| self.needs.iter().find(|(need, _)| need.id == id);
        let Some((need, token)) = refused.and_then(of_refused) else {
            return Ok(outcome);
        };
        let each = left.map_or(LEFT, |left| LEFT.min(left / 2));
        let caller = self.caller.namespace();
        let refused = desk.refused(&caller, &self.user, &need.id, token);
        let forgotten = bounded(each, refused).await;
        if !forgotten.unwrap_or(false) {
            // There is a newer token, with which the same call may succeed; or the failure has to
            // do, which says that the token is refused.
            return Ok(outcome);
        }
        let asking = Asking {
            caller: &caller,
            user: &self.user,
            need,
            base,
            left: each,
        };
        let challenge = bounded(each, desk.challenge(asking)).await?;
        let mut requirements = Requirements::default();
        requirements.authorization.push(need.clone());
        Err(Rejection::Missing(Box::new(Missing {
            tool: self.tool,
            requirements,
            challenges: vec![challenge],
            from_calls: secrets.may_come_from_calls(),
            places: Vec::new(),
            unreadable: Vec::new(),
        })))
    }
}
