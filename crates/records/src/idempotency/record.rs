//! The record of a call and its outcome, and their format in a store.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    Failure, StoreError,
    store::{self, Field, memory::MemoryLimits},
    tool::{failure::FailureParts, output::Output},
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

/// The field with everything about a call but bytes, as JSON.
const CALL: &str = "call";

/// The field without which a record says only that the call ran.
pub(super) const OUTCOME: &str = "outcome";

/// The field with the call of a task.
const SEALED: &str = "sealed";

/// The mark of a call that is running, is a task or must not run twice. Any other one may be
/// forgotten, and run again.
const KEPT: &str = "kept";

fn may_forget(_: &str, record: &store::Record) -> bool {
    record.fields.iter().all(|(name, _)| name != KEPT)
}

/// The record of a call in a store.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct CallRecord {
    /// The id of the call that wrote the record; both of that call's writes use it as their
    /// version. Only that call may change the record. Each write to a task has its own.
    #[serde(skip)]
    pub(super) claim: u64,
    /// A hash of the tool with its version, the input, the user and the credentials that the call
    /// carried.
    pub(super) fingerprint: String,
    /// True if the tool must not run twice (see
    /// [`run_at_most_once`](lambda_tools_core::Tool::run_at_most_once)). Such a record is never forgotten
    /// before it expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) at_most_once: bool,
    pub(super) state: CallState,
    /// The task of a call that was handed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<Box<TaskRecord>>,
    /// The time from which another call may replace the record.
    #[serde(skip, default = "never")]
    pub(super) free_at: SystemTime,
    #[serde(skip, default = "never")]
    pub(super) expires_at: SystemTime,
}

/// The part of a record about a task.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct TaskRecord {
    /// The random part of the task's id.
    pub(super) id: String,
    /// A hash of the caller and the user.
    pub(super) owner: String,
    /// The id of the tool.
    pub(super) tool: String,
    #[serde(with = "milliseconds")]
    pub(super) created_at: SystemTime,
    #[serde(with = "milliseconds")]
    pub(super) updated_at: SystemTime,
    /// The last message that the tool has reported.
    pub(super) message: Option<String>,
    pub(super) is_cancelled: bool,
    /// The call, encrypted, until it starts.
    #[serde(skip)]
    pub(super) sealed: Option<Vec<u8>>,
}

/// The progress of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallState {
    /// The tool is running, or its process died.
    Running {
        /// The deadline of the call that wrote the claim, after which the call is over.
        #[serde(with = "milliseconds")]
        until: SystemTime,
    },
    /// The tool ran; this is the [outcome](encode).
    Finished(#[serde(skip)] Vec<u8>),
    /// The tool ran; there was no room for the outcome.
    OutcomeDropped,
}

impl CallState {
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }
}

/// Times as numbers: a record in DynamoDB is paid for by its size.
mod milliseconds {
    use std::time::{Duration, SystemTime};

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(crate::clock::epoch_millis(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        let ms = u64::deserialize(from)?;
        Ok(SystemTime::UNIX_EPOCH + Duration::from_millis(ms))
    }
}

/// Returns an outcome as bytes, to be replayed byte for byte: the value is stored as the text that is
/// sent. Parsing it and writing it again could change the last digit of a float.
pub(super) fn encode(duration: Duration, result: &Result<Output, Failure>) -> Vec<u8> {
    // Responses have durations in microseconds.
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let outcome = (us, result.as_ref().map_err(Failure::parts));
    serde_json::to_vec(&outcome).expect("JSON can be written as JSON")
}

/// Decodes an outcome. Returns `None` if the bytes are not one.
pub(super) fn decode(bytes: &[u8]) -> Option<(Duration, Result<Output, Failure>)> {
    type Stored = (u64, Result<Box<RawValue>, FailureParts>);
    let (us, result): Stored = serde_json::from_slice(bytes).ok()?;
    let result = result.map(Output::Json).map_err(Failure::from_parts);
    Some((Duration::from_micros(us), result))
}

/// Returns the time of a record before its own are known.
fn never() -> SystemTime {
    SystemTime::UNIX_EPOCH
}

impl CallRecord {
    pub(super) fn into_stored(self) -> store::Record {
        let call = serde_json::to_string(&self).expect("a call's times are after 1970");
        let is_kept = self.state.is_running() || self.task.is_some() || self.at_most_once;
        let sealed = self.task.and_then(|it| it.sealed);
        let outcome = match self.state {
            CallState::Finished(outcome) => Some(outcome),
            CallState::Running { .. } | CallState::OutcomeDropped => None,
        };
        let fields = [
            (CALL, Some(Field::Text(call))),
            (KEPT, is_kept.then_some(Field::Number(1))),
            (OUTCOME, outcome.map(Field::Bytes)),
            (SEALED, sealed.map(Field::Bytes)),
        ];
        let fields = fields.into_iter();
        let fields = fields.filter_map(|(name, field)| Some((name.into(), field?)));
        store::Record {
            version: self.claim,
            fields: fields.collect(),
            free_at: Some(self.free_at),
            expires_at: self.expires_at,
        }
    }

    pub(super) fn from_stored(stored: store::Record) -> Result<Self, StoreError> {
        let detail = "the store holds another kind of record under the key of a call";
        Self::decode(stored).ok_or_else(|| StoreError::undecodable(detail))
    }

    fn decode(mut stored: store::Record) -> Option<Self> {
        let mut record: Self = serde_json::from_str(&stored.take_text(CALL)?).ok()?;
        if matches!(record.state, CallState::Finished(_)) {
            let outcome = stored.take_bytes(OUTCOME);
            record.state = outcome.map_or(CallState::OutcomeDropped, CallState::Finished);
        }
        if let Some(task) = &mut record.task {
            task.sealed = stored.take_bytes(SEALED);
        }
        Some(Self {
            claim: stored.version,
            free_at: stored.free_at?,
            expires_at: stored.expires_at,
            ..record
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use serde_json::json;

    use super::*;
    use crate::tool::reason::Reason;

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
            for sealed in [None, Some(vec![7])] {
                let mut record = record(state.clone(), 3001, false);
                record.task = Some(Box::new(TaskRecord {
                    id: "1".to_owned(),
                    owner: "owner".to_owned(),
                    tool: "A.Act@1.0.0".to_owned(),
                    created_at: at(1),
                    updated_at: at(2),
                    message: Some("half".to_owned()),
                    is_cancelled: true,
                    sealed,
                }));
                let stored = record.clone().into_stored();
                assert!(!(LIMITS.may_forget)("", &stored));
                assert_eq!(CallRecord::from_stored(stored), Ok(record));
            }
        }
    }

    #[test]
    fn a_record_without_its_outcome_says_that_the_call_ran() {
        let mut stored = record(CallState::Finished(vec![1]), 9000, false).into_stored();
        // The store rejects an outcome, and keeps the rest.
        stored.take(OUTCOME).unwrap();
        let record = record(CallState::OutcomeDropped, 9000, false);
        assert_eq!(CallRecord::from_stored(stored.clone()), Ok(record));
        stored.take(CALL).unwrap();
        assert!(CallRecord::from_stored(stored).is_err(), "not a call");
    }

    #[test]
    fn every_value_is_replayed_as_the_same_text() {
        let values = json!([
            null, 0, false, "", [], {}, 0.1 + 0.2, 5e-324, u64::MAX,
            {"b": [1, {"a": null}], "a": "é\u{0}\""}, "x".repeat(100_000),
        ]);
        for value in values.as_array().unwrap() {
            let output = Ok(Output::Value(value.clone()));
            let bytes = encode(Duration::from_micros(1500), &output);
            let Some((duration, Ok(Output::Json(text)))) = decode(&bytes) else {
                panic!("{value}");
            };
            assert_eq!(duration, Duration::from_micros(1500));
            assert_eq!(text.get(), value.to_string());
        }
    }

    #[test]
    fn failures_are_replayed_in_full() {
        for reason in [Reason::Failed, Reason::TimedOut] {
            let failure = Failure::internal(reason, "m").developer_message("d");
            let failed = Err(failure.prompt("p").retry_after(Duration::from_millis(7)));
            let replayed = decode(&encode(Duration::ZERO, &failed));
            let expected = Some((Duration::ZERO, failed));
            assert_eq!(format!("{replayed:?}"), format!("{expected:?}"));
        }
    }

    #[test]
    fn damaged_bytes_are_not_decoded() {
        for bytes in [&b""[..], b"\0", b"[", b"[1]"] {
            assert!(decode(bytes).is_none(), "{bytes:?}");
        }
    }
}
