//! The record of a call, and its format in a store.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

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
    is_anyones: |_| false,
    forgotten: "too many calls are remembered; the oldest are forgotten, and run again if repeated",
};

/// The field of a call that is running.
const UNTIL: &str = "until";

/// The field without which a record says only that the call ran.
pub(super) const OUTCOME: &str = "outcome";

/// The flag of a call that must not run twice.
const AT_MOST_ONCE: &str = "at_most_once";

/// The fields of a task.
const TASK: &str = "task";
const CANCELLED: &str = "cancelled";

/// Returns true unless the call is running, is a task or must not run twice: a forgotten call can
/// run again.
fn may_forget(_: &str, record: &store::Record) -> bool {
    let mut fields = record.fields.iter();
    fields.all(|(name, value)| {
        let is_once = *name == AT_MOST_ONCE && *value == Field::Flag(true);
        !is_once && ![UNTIL, TASK].contains(&&**name)
    })
}

/// The record of a call in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallRecord {
    /// The id of the call that wrote the record; both of that call's writes use it as their
    /// version. Only that call may change the record. Each write to a task has its own.
    pub(super) claim: u64,
    /// A hash of the tool with its version, the input, the user and the credentials that the call
    /// carried.
    pub(super) fingerprint: String,
    /// True if the tool must not run twice (see
    /// [`run_at_most_once`](crate::Tool::run_at_most_once)). Such a record is never forgotten
    /// before it expires.
    pub(super) at_most_once: bool,
    pub(super) state: CallState,
    /// The task of a call that was handed over.
    pub(super) task: Option<Box<TaskRecord>>,
    /// The time from which another call may replace the record.
    pub(super) free_at: SystemTime,
    pub(super) expires_at: SystemTime,
}

/// The part of a record about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskRecord {
    /// The random part of the task's id.
    pub(super) id: String,
    /// A hash of the caller and the user.
    pub(super) owner: String,
    /// The id of the tool.
    pub(super) tool: String,
    pub(super) created_at: SystemTime,
    pub(super) updated_at: SystemTime,
    /// The last message that the tool has reported.
    pub(super) message: Option<String>,
    pub(super) is_cancelled: bool,
    /// The call, encrypted, until it starts.
    pub(super) sealed: Option<Vec<u8>>,
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
        fields.extend(self.task.into_iter().flat_map(|it| it.into_fields()));
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
        let task = TaskRecord::decode(&mut stored).map(Box::new);
        Some(Self {
            task,
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

impl TaskRecord {
    fn into_fields(self) -> impl Iterator<Item = (Cow<'static, str>, Field)> {
        let fields = [
            (TASK, Some(Field::Text(self.id))),
            ("owner", Some(Field::Text(self.owner))),
            ("tool", Some(Field::Text(self.tool))),
            ("created_at", Some(Field::Number(millis(self.created_at)))),
            ("updated_at", Some(Field::Number(millis(self.updated_at)))),
            ("message", self.message.map(Field::Text)),
            (CANCELLED, self.is_cancelled.then_some(Field::Flag(true))),
            ("sealed", self.sealed.map(Field::Bytes)),
        ];
        let fields = fields.into_iter();
        fields.filter_map(|(name, field)| Some((name.into(), field?)))
    }

    fn decode(stored: &mut store::Record) -> Option<Self> {
        let id = stored.take_text(TASK)?;
        let mut time = |name| match stored.take(name)? {
            Field::Number(ms) => UNIX_EPOCH.checked_add(Duration::from_millis(ms)),
            _ => None,
        };
        let (created_at, updated_at) = (time("created_at")?, time("updated_at")?);
        Some(Self {
            id,
            created_at,
            updated_at,
            owner: stored.take_text("owner")?,
            tool: stored.take_text("tool")?,
            message: stored.take_text("message"),
            is_cancelled: stored.take(CANCELLED).is_some(),
            sealed: stored.take_bytes("sealed"),
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
            task: None,
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
