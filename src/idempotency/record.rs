//! The record of a call, and its format in a store.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{
    StoreError,
    clock::epoch_millis as millis,
    store::{self, Field, memory::MemoryLimits},
};

/// The limits of calls that are remembered in the memory of one process.
pub(super) const LIMITS: MemoryLimits = MemoryLimits {
    what: "calls",
    records: 50_000,
    bytes: 16 << 20,
    may_forget,
    forgotten: "too many calls are remembered; the oldest are forgotten, and run again if repeated",
};

/// The field of a call that is running.
const UNTIL: &str = "until";

/// The field without which a record says only that the call ran.
pub(super) const OUTCOME: &str = "outcome";

/// The flag of a call that must not run twice.
const AT_MOST_ONCE: &str = "at_most_once";

/// Returns true unless the call is running or must not run twice: a forgotten call can run again.
fn may_forget(_: &str, record: &store::Record) -> bool {
    let mut fields = record.fields.iter();
    fields.all(|(name, value)| {
        *name != UNTIL && !(*name == AT_MOST_ONCE && *value == Field::Flag(true))
    })
}

/// The record of a call in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallRecord {
    /// The id of the call that wrote the record; both of that call's writes use it as their
    /// version. Only that call may change the record.
    pub(super) claim: u64,
    /// A hash of the tool with its version, the input, the user and the credentials that the call
    /// carried.
    pub(super) fingerprint: String,
    /// True if the tool must not run twice (see
    /// [`run_at_most_once`](crate::Tool::run_at_most_once)). Such a record is never forgotten
    /// before it expires.
    pub(super) at_most_once: bool,
    pub(super) state: CallState,
    /// The time from which another call may replace the record.
    pub(super) free_at: SystemTime,
    pub(super) expires_at: SystemTime,
}

/// The progress of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    /// The tool is running, or its process died.
    Running {
        /// The deadline of the call that wrote the claim, after which the call is over.
        until: SystemTime,
    },
    /// The tool ran; this is the [outcome](super::outcome).
    Finished(Vec<u8>),
    /// The tool ran; there was no room for the outcome.
    OutcomeDropped,
}

impl CallRecord {
    pub(super) fn into_stored(self) -> store::Record {
        let mut fields = vec![
            ("fingerprint".into(), Field::Text(self.fingerprint)),
            (AT_MOST_ONCE.into(), Field::Flag(self.at_most_once)),
        ];
        match self.state {
            CallState::Running { until } => {
                fields.push((UNTIL.into(), Field::Number(millis(until))));
            }
            CallState::Finished(outcome) => fields.push((OUTCOME.into(), Field::Bytes(outcome))),
            CallState::OutcomeDropped => {}
        }
        store::Record {
            version: self.claim,
            fields,
            free_at: Some(self.free_at),
            expires_at: self.expires_at,
        }
    }

    pub(super) fn from_stored(stored: store::Record) -> Result<Self, StoreError> {
        let detail = "the store holds another kind of record under the key of a call";
        Self::decode(stored).ok_or_else(|| StoreError::undecodable(detail))
    }

    fn decode(mut stored: store::Record) -> Option<Self> {
        let free_at = stored.free_at?;
        let until = match stored.take(UNTIL) {
            Some(Field::Number(ms)) => UNIX_EPOCH.checked_add(Duration::from_millis(ms)),
            _ => None,
        };
        let Some(Field::Flag(at_most_once)) = stored.take(AT_MOST_ONCE) else {
            return None;
        };
        Some(Self {
            claim: stored.version,
            fingerprint: stored.take_text("fingerprint")?,
            at_most_once,
            state: match (stored.take_bytes(OUTCOME), until) {
                (Some(outcome), _) => CallState::Finished(outcome),
                (None, Some(until)) => CallState::Running { until },
                (None, None) => CallState::OutcomeDropped,
            },
            free_at,
            expires_at: stored.expires_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(ms)
    }

    fn record(state: CallState, free_at: u64, at_most_once: bool) -> CallRecord {
        CallRecord {
            claim: 7,
            fingerprint: "print".to_owned(),
            at_most_once,
            state,
            free_at: at(free_at),
            expires_at: at(9000),
        }
    }

    #[test]
    fn records_survive_storing() {
        let running = || CallState::Running { until: at(1001) };
        for state in [
            running(),
            CallState::OutcomeDropped,
            CallState::Finished(vec![0, 255]),
        ] {
            for at_most_once in [false, true] {
                let record = record(state.clone(), 3001, at_most_once);
                let stored = record.clone().into_stored();
                let may_run_again = !at_most_once && record.state != running();
                assert_eq!((LIMITS.may_forget)("", &stored), may_run_again);
                assert_eq!(CallRecord::from_stored(stored), Ok(record));
            }
        }
    }

    #[test]
    fn a_record_that_is_not_a_call_is_an_error() {
        let mut stored = record(CallState::OutcomeDropped, 9000, false).into_stored();
        stored.take("fingerprint").unwrap();
        assert!(CallRecord::from_stored(stored).is_err());
    }
}
