//! The rules for responses, which `docs/idempotency.md` promises.

use super::{
    Ledger,
    ledger::{Response, Run, RunResult},
};
use crate::{
    Failure,
    call::{Outcome, Rejection},
    store::explorer::current_process,
    tool::{output::Output, reason::Reason},
};

impl Ledger {
    /// Records the response to a call, and checks that it is true.
    pub(super) fn respond(&mut self, call: usize, input: &str, result: Result<Outcome, Rejection>) {
        let response = match result {
            Ok(outcome) => self.outcome(input, &outcome),
            Err(Rejection::CallIdReused) => {
                if self.inputs.iter().all(|it| it == input) {
                    self.violate("a call is rejected because of another one that was never made");
                }
                Response::Rejected("reused")
            }
            Err(Rejection::Unprotected(_)) => {
                if !self.disturbed.contains(&current_process()) {
                    self.violate("a call is rejected although the store responded");
                }
                Response::Rejected("unprotected")
            }
            Err(_) => {
                self.violate("an unexpected rejection");
                Response::Rejected("other")
            }
        };
        self.responses.insert(call, response);
    }

    fn outcome(&mut self, input: &str, outcome: &Outcome) -> Response {
        match &outcome.result {
            Ok(output) => {
                let text = match output {
                    Output::Value(value) => value.to_string(),
                    Output::Json(json) => json.get().to_owned(),
                };
                self.of_run(input, outcome, &text, RunResult::Value)
            }
            Err(failure) => match failure.parts().reason {
                Reason::TimedOut if outcome.is_replay => self.interrupted(input, failure, None),
                Reason::Panicked if outcome.is_replay => {
                    self.interrupted(input, failure, Some(RunResult::Panic))
                }
                Reason::Failed => {
                    let result = if failure.can_retry() {
                        RunResult::RetryableFailure
                    } else {
                        RunResult::Failure
                    };
                    if outcome.is_replay && failure.can_retry() {
                        self.violate("a failure that may be retried is replayed");
                    }
                    self.of_run(input, outcome, failure.message(), result)
                }
                _ => self.own_failure(outcome, failure),
            },
        }
    }

    /// The outcome of a run: of this call's own, or of an earlier one with the same input.
    fn of_run(
        &mut self,
        input: &str,
        outcome: &Outcome,
        number: &str,
        result: RunResult,
    ) -> Response {
        let number = number.parse().unwrap_or(usize::MAX);
        let is_true = self
            .runs
            .get(number)
            .is_some_and(|run| run.result == Some(result) && run.input == input);
        if !is_true {
            self.violate("an outcome that no run of this call had");
        }
        if outcome.has_run == outcome.is_replay {
            self.violate("an outcome must be either new or replayed");
        }
        if outcome.is_replay {
            return Response::Replayed(number);
        }
        let is_known = |it: &Response| *it == Response::Ran(number);
        if self.responses.values().any(is_known) {
            self.violate("two calls had the same run");
        }
        Response::Ran(number)
    }

    /// The replayed failure of a call whose run did not return.
    fn interrupted(
        &mut self,
        input: &str,
        failure: &Failure,
        result: Option<RunResult>,
    ) -> Response {
        let is_such = |run: &Run| run.result == result && run.input == input;
        if !self.is_at_most_once || failure.can_retry() || !self.runs.iter().any(is_such) {
            self.violate("an interruption that no run of this call had");
        }
        Response::ReplayedFailure(failure.parts().reason.as_str())
    }

    /// A failure of the library.
    fn own_failure(&mut self, outcome: &Outcome, failure: &Failure) -> Response {
        let (reason, is_replay) = (failure.parts().reason, outcome.is_replay);
        // An earlier call, unless this one took its own claim for that of another.
        let has_other = self.claims > 0 && self.inputs.len() > 1;
        // A process that had stopped responds to what it saw before.
        let is_over = !self.is_running() || self.disturbed.contains(&current_process());
        let is_final = is_replay && !failure.can_retry();
        let is_allowed = match reason {
            Reason::Running => !is_replay && failure.can_retry() && has_other,
            Reason::CutOff => is_final && self.is_at_most_once && has_other && is_over,
            Reason::Panicked | Reason::TimedOut => !is_replay,
            Reason::NoTime => !is_replay && failure.can_retry(),
            _ => false,
        };
        if !is_allowed {
            self.violate(format!("a failure '{}', out of place", reason.as_str()));
        }
        if is_replay {
            Response::ReplayedFailure(reason.as_str())
        } else {
            Response::Failed(reason.as_str())
        }
    }
}

fn unexpected<T>(response: &Response, when: &str) -> Result<T, String> {
    Err(format!("{response:?} {when}"))
}

/// The response to a repeated call as soon as nothing happens any more.
pub(super) fn at_once(response: &Response, is_recorded: bool) -> Result<(), String> {
    match response {
        Response::Replayed(_)
        | Response::ReplayedFailure("panicked" | "timed_out")
        | Response::Rejected("reused") => Ok(()),
        Response::Ran(_) | Response::Failed("running") | Response::ReplayedFailure("cut_off")
            if !is_recorded =>
        {
            Ok(())
        }
        _ => unexpected(response, "immediately"),
    }
}

/// The response after all deadlines: nobody waits for a call that is over.
pub(super) fn later(response: &Response) -> Result<(), String> {
    match response {
        Response::Ran(_)
        | Response::Replayed(_)
        | Response::ReplayedFailure(_)
        | Response::Rejected("reused") => Ok(()),
        _ => unexpected(response, "after all deadlines"),
    }
}

/// The response after the record has expired.
pub(super) fn after_expiry(response: &Response) -> Result<(), String> {
    match response {
        Response::Ran(_) => Ok(()),
        _ => unexpected(response, "after the record has expired"),
    }
}
