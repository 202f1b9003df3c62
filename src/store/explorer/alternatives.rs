//! The decisions that are possible at a point of an execution.

use std::time::{Duration, SystemTime};

use super::{
    Treatment,
    action::{Action, Delivery},
    execution::Execution,
    network::{Request, Sent, with_network},
    process::START,
};

impl Execution<'_> {
    /// The possible decisions, in a fixed order.
    pub(super) fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        with_network(|network| {
            for (index, sent) in network.sent.iter().enumerate() {
                self.add_deliveries(&mut actions, index, sent);
            }
            let has_expired =
                |expires_at: SystemTime| expires_at <= SystemTime::UNIX_EPOCH + START + self.now;
            for (id, stored) in &network.records {
                if has_expired(stored.record.expires_at) {
                    actions.push(Action::Remove(id.clone()));
                }
            }
        });
        let next = self.scenario.setup().calls.get(self.started);
        if next.is_some_and(|process| !self.slots[*process].is_frozen) {
            actions.push(Action::Start);
        }
        let is_busy = self.is_busy();
        if (is_busy || self.started < self.crashed.len()) && self.passes < self.bounds.passes {
            let steps = self.bounds.steps.iter();
            actions.extend(steps.map(|ms| Action::Pass(Duration::from_millis(*ms))));
        }
        for (number, slot) in self.slots.iter().enumerate() {
            if slot.is_frozen {
                actions.push(Action::Thaw(number));
            } else if slot.is_busy() {
                actions.push(Action::Crash(number));
                let freeze = self.bounds.freezes;
                if freeze.is_some_and(|freeze| self.scenario.may_freeze(number, freeze)) {
                    actions.push(Action::Freeze(number));
                }
            }
        }
        actions.retain(|action| !action.is_fault() || self.faults < self.bounds.faults);
        actions.retain(|action| self.bounds.copies || !action.makes_copy());
        let awaits = with_network(|network| network.sent.iter().any(Sent::is_awaited));
        if self.started == self.crashed.len() && (!is_busy || !awaits) {
            actions.push(Action::End);
        }
        actions
    }

    pub(super) fn add_deliveries(&self, actions: &mut Vec<Action>, index: usize, sent: &Sent) {
        if let Request::Service(text) = &sent.request {
            let treatments = self.scenario.treatments(text, !sent.is_awaited());
            let serve = |it: Treatment| Action::Serve(index, it.name, it.is_fault);
            actions.extend(treatments.into_iter().map(serve));
        } else {
            let deliveries = Delivery::of(sent).iter();
            actions.extend(deliveries.map(|it| Action::Deliver(index, *it)));
        }
    }
}
