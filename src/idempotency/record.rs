//! What is remembered of a call.

use std::time::SystemTime;

/// What a store holds under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which call wrote it: a unique id. Only that call may change it.
    pub claim: String,
    /// What was called: a hash of the tool with its version, the input, the user and the credentials
    /// that the call brought.
    pub fingerprint: String,
    /// Who calls, such as `key PARTNER_KEY`; empty where nobody is known. Stores with limited room
    /// share it by owner; others need not keep it.
    pub owner: String,
    /// Whether the tool must rather not run at all than twice, as
    /// [`run_at_most_once`](crate::Tool::run_at_most_once) says: such a record is never given up
    /// before it expires.
    pub at_most_once: bool,
    /// How far the call is.
    pub state: State,
    /// From then on another call may take its place.
    pub free_at: SystemTime,
    /// From then on it may be deleted. Never before `free_at`.
    pub expires_at: SystemTime,
}

impl Record {
    pub(super) fn size(&self) -> usize {
        match &self.state {
            State::Finished(outcome) => outcome.len(),
            State::Running { .. } | State::Ran => 0,
        }
    }
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its tool runs, or its process died.
    Running {
        /// The deadline of the call that claimed it, after which it is over.
        until: SystemTime,
    },
    /// Its tool ran; this is the outcome, in a form of the library's own.
    Finished(Vec<u8>),
    /// Its tool ran; the outcome was too large to keep, or had to make room for others.
    Ran,
}
