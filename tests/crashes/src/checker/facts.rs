//! The facts about each attempt, collected from a history.

use std::collections::BTreeMap;

use crate::{
    history::{Answer, Attempt, History, Request, Serial, Time, What},
    plan::{Behavior, Plan, Policy},
};

/// The facts about a run.
pub(super) struct Facts {
    pub(super) policy: Policy,
    /// The attempts that were delivered.
    pub(super) attempts: BTreeMap<Attempt, AttemptFacts>,
    /// The effects, in order.
    pub(super) effects: Vec<Effect>,
    /// The requests that the store has carried out, in order.
    pub(super) writes: Vec<(Time, Attempt, Request)>,
    /// The processes that ended by themselves.
    pub(super) exits: usize,
    /// The clients that got no outcome.
    pub(super) gave_up: usize,
}

/// The facts about an attempt.
pub(super) struct AttemptFacts {
    pub(super) item: u32,
    pub(super) delivered: Time,
    pub(super) deadline: Time,
    pub(super) behavior: Behavior,
    /// The time of the first claim that was written.
    pub(super) claimed: Option<Time>,
    /// The time at which the outcome was recorded.
    pub(super) recorded: Option<Time>,
    /// The time at which the claim was withdrawn.
    pub(super) released: Option<Time>,
    /// The requests with faults.
    pub(super) faults: Vec<Request>,
    pub(super) has_store_requests: bool,
    /// The time at which the tool asked for its effect.
    pub(super) ran: Option<Time>,
    pub(super) answer: Option<(Time, Answer)>,
    /// The time at which the process was killed during this attempt or after it.
    pub(super) killed: Option<Time>,
    /// The time at which the process stopped running for some time.
    pub(super) frozen: Option<Time>,
    /// The time at which it continued.
    pub(super) thawed: Option<Time>,
}

/// An effect.
pub(super) struct Effect {
    pub(super) attempt: Attempt,
    pub(super) item: u32,
    pub(super) serial: Serial,
    pub(super) at: Time,
}

impl AttemptFacts {
    /// The time at which the tool no longer runs, as far as known.
    pub(super) fn tool_ended(&self) -> Option<Time> {
        let answered = self.answer.as_ref().map(|(at, _)| *at);
        // Its request for the effect may have been on its way.
        let ran_before = |ran: &Time| self.thawed.is_none_or(|thawed| *ran < thawed);
        let ran = self.ran.filter(ran_before);
        // A tool may not run any more when its process continues.
        let frozen = ran.and_then(|ran| Some(ran.max(self.frozen?)));
        let ends = [self.killed, answered, self.recorded, self.released, frozen];
        ends.into_iter().flatten().min()
    }

    /// The time at which the claim was settled, or the attempt's response without a claim.
    pub(super) fn settled(&self) -> Option<Time> {
        [self.recorded, self.released].into_iter().flatten().min()
    }
}

impl Facts {
    pub(super) fn of(plan: &Plan, history: &History) -> Self {
        let mut facts = Self {
            policy: plan.policy,
            attempts: BTreeMap::new(),
            effects: Vec::new(),
            writes: Vec::new(),
            exits: 0,
            gave_up: 0,
        };
        for event in &history.0 {
            facts.add(plan, event.at, &event.what);
        }
        facts
    }

    fn add(&mut self, plan: &Plan, at: Time, what: &What) {
        match what {
            What::Delivered {
                attempt,
                item,
                deadline,
                ..
            } => {
                let facts = AttemptFacts {
                    item: *item,
                    delivered: at,
                    deadline: *deadline,
                    behavior: plan.attempt(*attempt).behavior,
                    claimed: None,
                    recorded: None,
                    released: None,
                    faults: Vec::new(),
                    has_store_requests: false,
                    ran: None,
                    answer: None,
                    killed: None,
                    frozen: None,
                    thawed: None,
                };
                self.attempts.insert(*attempt, facts);
            }
            What::Exited(_) => self.exits += 1,
            What::GaveUp(_) => self.gave_up += 1,
            What::EffectApplied(attempt, item, serial) => self.effects.push(Effect {
                attempt: *attempt,
                item: *item,
                serial: *serial,
                at,
            }),
            _ => self.add_to_attempt(at, what),
        }
    }

    fn add_to_attempt(&mut self, at: Time, what: &What) {
        let (What::StoreReceived(attempt, _)
        | What::StoreApplied(attempt, ..)
        | What::StoreFault(attempt, ..)
        | What::EffectReceived(attempt, _)
        | What::Answered { attempt, .. }
        | What::Frozen(_, attempt)
        | What::Thawed(_, attempt)
        | What::Killed(_, Some(attempt), _)) = what
        else {
            return;
        };
        if let What::StoreApplied(_, request, true) = what {
            self.writes.push((at, *attempt, *request));
        }
        let Some(facts) = self.attempts.get_mut(attempt) else {
            return;
        };
        match what {
            What::StoreReceived(..) => facts.has_store_requests = true,
            What::StoreFault(_, request, _) => facts.faults.push(*request),
            What::StoreApplied(_, request, true) => {
                let time = match request {
                    Request::Claim => &mut facts.claimed,
                    Request::Record => &mut facts.recorded,
                    Request::Release => &mut facts.released,
                };
                time.get_or_insert(at);
            }
            What::EffectReceived(..) => {
                facts.ran.get_or_insert(at);
            }
            What::Answered { answer, .. } => facts.answer = Some((at, answer.clone())),
            What::Killed(..) => facts.killed = Some(at),
            What::Frozen(..) => facts.frozen = Some(at),
            What::Thawed(..) => facts.thawed = Some(at),
            _ => {}
        }
    }

    /// The first attempt whose outcome was recorded.
    pub(super) fn recorder(&self) -> Option<(Attempt, &AttemptFacts, Time)> {
        let recorded = self
            .attempts
            .iter()
            .filter_map(|(attempt, facts)| Some((*attempt, facts, facts.recorded?)));
        recorded.min_by_key(|(_, _, at)| *at)
    }
}
