//! The record of a call, and its form in a store.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{
    StoreError,
    store::{self, Eviction, Field, memory::MemoryLimits},
};

/// The limits of calls that are remembered in the memory of one process.
pub(super) const LIMITS: MemoryLimits = MemoryLimits {
    what: "calls",
    per_owner: 10_000,
    total: 50_000,
    bytes: 16 << 20,
    forgotten: "too many calls are remembered; the oldest are forgotten, and run again if repeated",
    dropped: "the outcomes of calls take too much memory; the oldest are dropped, and their calls fail if repeated",
};

/// The field that may be dropped, leaving a record that the call ran.
pub(super) const OUTCOME: &str = "outcome";

/// The record of a call in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallRecord {
    /// Identifies the call that wrote the record; both of that call's writes use it as their
    /// version. Only that call may change the record.
    pub(super) claim: u64,
    /// A hash of the tool with its version, the input, the user and the credentials that the call
    /// carried.
    pub(super) fingerprint: String,
    /// The caller, such as `key PARTNER_KEY`; empty if unknown.
    pub(super) owner: String,
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
    /// The tool ran; the outcome was too large to keep, or had to make room for others.
    OutcomeDropped,
}

impl CallRecord {
    pub(super) fn into_stored(self) -> store::Record {
        let is_running = matches!(self.state, CallState::Running { .. });
        let mut fields = vec![
            ("fingerprint".into(), Field::Text(self.fingerprint)),
            ("at_most_once".into(), Field::Flag(self.at_most_once)),
        ];
        match self.state {
            CallState::Running { until } => {
                fields.push(("until".into(), Field::Number(millis(until))));
            }
            CallState::Finished(outcome) => fields.push((OUTCOME.into(), Field::Bytes(outcome))),
            CallState::OutcomeDropped => {}
        }
        store::Record {
            version: self.claim,
            fields,
            eviction: Some(Eviction {
                owner: self.owner,
                // A forgotten call can run again, so never forget one that is running or that must
                // not run twice.
                is_forgettable: !self.at_most_once && !is_running,
                droppable: Some(OUTCOME),
            }),
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
        let until = match stored.take("until") {
            Some(Field::Number(ms)) => UNIX_EPOCH.checked_add(Duration::from_millis(ms)),
            _ => None,
        };
        let at_most_once = match stored.take("at_most_once") {
            Some(Field::Flag(flag)) => flag,
            // Older records lack the field. In them, `free_at` is later than `until` only for calls
            // of at-most-once tools.
            _ => until.is_some_and(|until| until < free_at),
        };
        Some(Self {
            claim: stored.version,
            fingerprint: stored.take_text("fingerprint")?,
            owner: stored
                .eviction
                .take()
                .map(|it| it.owner)
                .unwrap_or_default(),
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

fn millis(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
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
            owner: "owner".to_owned(),
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
                assert_eq!(CallRecord::from_stored(stored), Ok(record));
            }
        }
    }

    #[test]
    fn records_without_a_policy_can_be_read() {
        let until = at(1000);
        for (state, free_at, at_most_once) in [
            (CallState::Running { until }, 1000, false),
            (CallState::Running { until }, 9000, true),
            (CallState::Finished(vec![1]), 9000, false),
            (CallState::OutcomeDropped, 9000, false),
        ] {
            let record = record(state, free_at, at_most_once);
            let mut stored = record.clone().into_stored();
            stored.take("at_most_once").unwrap();
            assert_eq!(CallRecord::from_stored(stored), Ok(record));
        }
    }

    #[test]
    fn a_record_that_is_not_a_call_is_an_error() {
        let mut stored = record(CallState::OutcomeDropped, 9000, false).into_stored();
        stored.take("fingerprint").unwrap();
        assert!(CallRecord::from_stored(stored).is_err());
    }
}
