//! The place of a process.

use super::{history::History, process::Process};

/// A process, or the place of one that has crashed.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) process: Option<Process>,
    pub(super) is_frozen: bool,
    pub(super) history: History,
}

impl Slot {
    pub(super) fn is_busy(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_busy)
    }

    pub(super) fn proceed(&self) {
        if let Some(process) = &self.process
            && !self.is_frozen
        {
            process.proceed();
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_some()
    }
}
