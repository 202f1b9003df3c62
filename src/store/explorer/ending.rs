//! The end of an execution, in which every request is answered.

use super::{
    action::{Action, Delivery},
    execution::{Execution, PROMPT},
    network::{Sent, with_network},
};

impl Execution<'_> {
    /// Answers all requests until nothing happens any more. An error if that takes too long.
    pub(crate) fn drain(&mut self) -> Result<(), String> {
        const ROUNDS: usize = 300;
        for number in 0..self.slots.len() {
            if self.slots[number].is_frozen {
                self.thaw(number);
            }
        }
        for _ in 0..ROUNDS {
            let next = with_network(|network| network.sent.iter().position(Sent::is_awaited));
            match next {
                Some(index) => self.treat_well(index),
                None if self.is_busy() => self.pass(PROMPT),
                None => return self.scenario.violation().map_or(Ok(()), Err),
            }
        }
        Err("a call waits forever".to_owned())
    }

    fn treat_well(&mut self, index: usize) {
        let mut actions = Vec::new();
        with_network(|network| self.add_deliveries(&mut actions, index, &network.sent[index]));
        match actions.first() {
            Some(Action::Deliver(..)) => self.deliver(index, Delivery::Answered),
            Some(Action::Serve(_, treatment, _)) => self.serve(index, treatment, false),
            _ => {}
        }
    }

    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.drain()?;
        for call in 0..self.crashed.len() {
            if !self.crashed[call] && !self.scenario.has_ended(call) {
                return Err(format!("call {call} got no response"));
            }
        }
        let scenario = self.scenario;
        scenario.end(self)
    }
}
