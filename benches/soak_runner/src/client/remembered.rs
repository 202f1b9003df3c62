//! Calls that are remembered: the first one runs, and its repetitions get its outcome.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, KEYS, request::or_store_error};
use crate::{
    answer::{Answer, value_in},
    event::Credential,
    protocol::{Call, Protocol, ToolFailure},
};

/// The beginning of the text for developers of a call that is not claimed.
pub(super) const UNPROTECTED: &str =
    "Nothing was run: the server cannot determine whether this call has run before (";

/// The time after which every claim of a call is free: the invocation's 23 seconds and 2 more.
const CLAIM: Duration = Duration::from_secs(30);
/// The maximum number of calls that a client keeps in mind.
const MAX_UNSETTLED: usize = 20;

/// A call during which the store has failed, so that it may have run, or left its claim.
pub(super) struct Unsettled {
    call: Call,
    free_at: Instant,
}

impl Client {
    pub(super) async fn remembered(&mut self) -> Option<()> {
        let is_once = self.random.bool();
        let call = self.effect(if is_once { "Load.ActOnce" } else { "Load.Act" });
        let credential = self.credential();
        let (value, store_failures) = self.first("first call", &call, &credential).await?;
        if store_failures > 0 {
            self.unsettled(call);
            return None;
        }
        self.replay(&call, &value).await?;
        match self.random.u8(..4) {
            0 => self.conflict(&call).await,
            1 => self.other_caller(&call, &value).await,
            _ => Some(()),
        }
    }

    fn effect(&mut self, tool: &'static str) -> Call {
        Call {
            protocol: self.any_protocol(),
            tool,
            id: self.new_id(),
            input: json!({"client": self.number, "number": self.last}),
            context: Value::Null,
        }
    }

    /// A call that runs: returns its value, and the number of requests that the store has failed.
    async fn first(
        &mut self,
        kind: &'static str,
        call: &Call,
        credential: &Credential,
    ) -> Option<(Value, u64)> {
        let shared = self.shared.clone();
        let mut value = call.input.clone();
        let judge = |answer: &Answer| {
            let run = value_in(answer)["run"].clone();
            value["run"] = run.clone();
            let expected = call.value(&value);
            let is_store_error = or_store_error(answer, &expected, &call.unavailable(UNPROTECTED))?;
            let is_run = run
                .as_u64()
                .is_some_and(|run| shared.recorder.is_new_run(run));
            if is_store_error || is_run {
                return Ok(is_store_error);
            }
            Err(format!("not a new run: {}", answer.quoted()))
        };
        let answer = self.send(kind, call.event(credential), judge).await;
        let Some(answer) = answer else {
            // A claim may remain if it cannot be withdrawn.
            self.unsettled(call.clone());
            return None;
        };
        Some((value, answer.store_failures))
    }

    fn unsettled(&mut self, call: Call) {
        // A call that runs at most once may never run again.
        if call.tool == "Load.Act" && self.unsettled.len() < MAX_UNSETTLED {
            let free_at = Instant::now() + CLAIM;
            self.unsettled.push(Unsettled { call, free_at });
        }
    }

    /// The same call, in a protocol that has the same caller.
    fn again(&mut self, call: &Call) -> Call {
        let mut again = call.clone();
        if call.protocol != Protocol::Direct {
            again.protocol = self.any_protocol_over_http();
        }
        again
    }

    async fn replay(&mut self, call: &Call, value: &Value) -> Option<()> {
        let again = self.again(call);
        let expected = again.replayed(again.value(value));
        let unavailable = again.unavailable(UNPROTECTED);
        let event = again.event(&self.credential());
        let judge = |answer: &_| or_store_error(answer, &expected, &unavailable);
        self.send("replay", event, judge).await?;
        Some(())
    }

    /// The same id with another input.
    async fn conflict(&mut self, call: &Call) -> Option<()> {
        let mut other = self.again(call);
        other.input["number"] = (self.last + 1_000_000).into();
        let expected = other.id_reused();
        let unavailable = other.unavailable(UNPROTECTED);
        let event = other.event(&self.credential());
        let judge = |answer: &_| or_store_error(answer, &expected, &unavailable);
        self.send("conflict", event, judge).await?;
        Some(())
    }

    /// The same id and input of another caller: another call.
    async fn other_caller(&mut self, call: &Call, value: &Value) -> Option<()> {
        let credential = match self.key() {
            Some(key) => {
                let other = KEYS.iter().find(|(_, other)| *other != key);
                other.map(|(_, other)| Credential::ApiKey(other))?
            }
            None => Credential::Token(self.shared.issuer.token("user-of-a-reused-id")),
        };
        let mut call = call.clone();
        if call.protocol == Protocol::Direct {
            call.protocol = Protocol::Oxp;
        }
        // Other clients have the same caller, but no id of theirs contains this client's number.
        let (other, _) = self
            .first("id of another caller", &call, &credential)
            .await?;
        if other["run"] == value["run"] {
            let detail = format!("the outcome of another caller: {other}");
            self.shared.recorder.wrong("id of another caller", &detail);
        }
        Some(())
    }

    /// Repeats a call that the failing store has left in an unknown state: it runs, or has run.
    pub(super) async fn settle_one(&mut self) -> Option<()> {
        let now = Instant::now();
        let place = self.unsettled.iter().position(|it| it.free_at <= now)?;
        let Unsettled { call, .. } = self.unsettled.swap_remove(place);
        let mut value = call.input.clone();
        let judge = |answer: &Answer| {
            value["run"] = value_in(answer)["run"].clone();
            let ran = call.value(&value);
            let replayed = call.replayed(ran.clone());
            if replayed.judge(answer).is_ok() {
                return Ok(false);
            }
            or_store_error(answer, &ran, &call.unavailable(UNPROTECTED))
        };
        let event = call.event(&self.credential());
        let answer = self
            .send("call after a failure of the store", event, judge)
            .await;
        match answer {
            Some(answer) if answer.store_failures == 0 => self.replay(&call, &value).await,
            _ => {
                self.unsettled(call);
                None
            }
        }
    }

    /// A failure: one that may be retried is forgotten, the other one is remembered.
    pub(super) async fn remembered_failure(&mut self) -> Option<()> {
        let mut call = self.effect("Load.Fail");
        let can_retry = self.random.bool();
        call.input["retry"] = can_retry.into();
        let failure = ToolFailure {
            message: "The tool failed on request".into(),
            developer_message: Some(format!("call {} of client {}", self.last, self.number)),
            prompt: Some(format!("Do not repeat call {}.", self.last)),
            can_retry,
            retry_after_ms: can_retry.then_some(250),
        };
        for is_first in [true, false] {
            let call = self.again(&call);
            let mut expected = call.failure(&failure);
            if !is_first && !can_retry {
                expected = call.replayed(expected);
            }
            let kind = match (is_first, can_retry) {
                (true, _) => "first failure",
                (false, true) => "retry of a failure",
                (false, false) => "replay of a failure",
            };
            let unavailable = call.unavailable(UNPROTECTED);
            let event = call.event(&self.credential());
            let judge = |answer: &_| or_store_error(answer, &expected, &unavailable);
            let answer = self.send(kind, event, judge).await?;
            if answer.store_failures > 0 {
                return None;
            }
        }
        Some(())
    }
}
