//! Digests of states, so that the search continues only once from each state.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{
    execution::Execution,
    network::{Request, with_network},
};

impl Execution<'_> {
    /// A digest of everything on which the rest of the execution depends.
    pub(super) fn digest(&self) -> u64 {
        let mut state = DefaultHasher::new();
        (self.now, self.faults, self.passes).hash(&mut state);
        for slot in &self.slots {
            (slot.is_frozen, slot.is_running(), slot.history).hash(&mut state);
        }
        with_network(|network| {
            for (id, stored) in &network.records {
                (id, stored.writer).hash(&mut state);
            }
            for sent in &network.sent {
                let text = match &sent.request {
                    Request::Service(text) => Some(text),
                    _ => None,
                };
                (sent.from, sent.is_awaited(), text).hash(&mut state);
            }
        });
        self.scenario.digest(&mut state);
        state.finish()
    }
}
