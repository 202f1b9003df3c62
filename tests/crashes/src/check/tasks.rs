//! The rules of calls that become tasks.

use super::{Checks, Rule};
use crate::{
    history::{Answer, Attempt, Kind, Outcome, Time},
    plan::Request,
};

impl Outcome {
    /// Returns true if a task with this status has ended.
    fn is_end(&self) -> bool {
        matches!(
            self,
            Self::Value(..)
                | Self::Failure(_)
                | Self::CutOff
                | Self::NeverStarted
                | Self::Cancelled
        )
    }
}

impl Checks<'_> {
    fn works(&self, task: &str) -> impl Iterator<Item = &Attempt> {
        let task = task.to_owned();
        self.attempts.iter().filter(move |it| it.is_work_of(&task))
    }

    /// Returns the tasks that had not ended, although an event for them was treated well.
    pub(super) fn stuck(&self, stuck: &[String]) -> impl Iterator<Item = (Rule, usize)> {
        let attempts = self.attempts.iter().enumerate();
        attempts.filter_map(move |(number, attempt)| {
            let is_stuck = attempt.kind == Kind::Work
                && attempt.task.as_ref().is_some_and(|it| stuck.contains(it));
            let is_faulty = attempt.faults.iter().any(|it| *it != Request::Record);
            let is_done = |(_, answer): &(Time, Answer)| answer.outcome == Outcome::Done;
            let is_done = attempt.answer.as_ref().is_some_and(is_done);
            let must_start = attempt.died.is_none() && is_done && !is_faulty;
            let has_started = attempt.claimed.is_some();
            (is_stuck && (has_started || must_start)).then_some((Rule::NotStuck, number))
        })
    }

    /// Returns true if a task was stopped, on a machine that is overloaded, and nobody was told
    /// anything else than that its call may be repeated.
    pub(super) fn was_stopped(&self, attempt: &Attempt) -> bool {
        let mut told = self.attempts.iter().filter_map(|it| {
            let is_told = matches!(it.kind, Kind::Call | Kind::Get) && it.task == attempt.task;
            it.answer.as_ref().filter(|_| is_told)
        });
        let may_repeat = |it: &Outcome| *it == Outcome::Failure(true) || !it.is_end();
        attempt.kind == Kind::Work && told.all(|(_, it)| may_repeat(&it.outcome))
    }

    /// Returns true if another attempt ran for the same task before.
    pub(super) fn repeats_task(&self, attempt: &Attempt) -> bool {
        let (Some(task), Some(ran)) = (attempt.task.as_deref(), attempt.ran) else {
            return false;
        };
        self.works(task)
            .any(|it| it.ran.is_some_and(|other| other < ran))
    }

    /// Returns true if the task was cancelled before it started.
    pub(super) fn runs_cancelled(&self, attempt: &Attempt) -> bool {
        let (Some(claimed), Some(_)) = (attempt.claimed, attempt.ran) else {
            return false;
        };
        let mut cancels = self.attempts.iter().filter(|it| it.kind == Kind::Cancel);
        cancels.any(|it| {
            let answer = it.answer.as_ref();
            it.task == attempt.task
                && answer.is_some_and(|(at, it)| *at < claimed && it.outcome == Outcome::Done)
        })
    }

    /// Returns true if somebody was told another end of the same task before.
    pub(super) fn ends_differently(&self, attempt: &Attempt, answer: &Answer) -> bool {
        let of_task = |it: &&Attempt| it.kind == Kind::Get && it.task == attempt.task;
        let before = self.attempts.iter().filter(of_task).filter_map(|it| {
            let (at, answer) = it.answer.as_ref()?;
            (*at <= attempt.delivered && answer.outcome.is_end()).then_some(&answer.outcome)
        });
        // A repeated call may have replaced the task.
        let may_follow =
            |end: &Outcome| *end == answer.outcome || answer.outcome == Outcome::NoTask;
        attempt.kind == Kind::Get && !before.into_iter().all(may_follow)
    }

    /// Returns true if a response differs from what a client was told of a task whose outcome was
    /// recorded at this time.
    pub(super) fn ignores_end(&self, recorder: &Attempt, at: Time, answer: &Answer) -> bool {
        let mut told = self.attempts.iter().filter_map(|it| {
            let is_told = it.kind == Kind::Get && it.task == recorder.task;
            let (_, answer) = it
                .answer
                .as_ref()
                .filter(|_| is_told && at < it.delivered)?;
            Some(&answer.outcome)
        });
        // A task that is cancelled and then fails is told as cancelled; its call gets the failure.
        let is_failure = matches!(answer.outcome, Outcome::Failure(_));
        let agrees =
            |told: &Outcome| *told == answer.outcome || (*told == Outcome::Cancelled && is_failure);
        !answer.outcome.is_end() || !told.all(agrees)
    }

    /// Returns true if a response states only what happened.
    pub(super) fn is_true_of_task(&self, attempt: &Attempt, at: Time, answer: &Answer) -> bool {
        // A call is told of any task that has its id.
        let is_meant = |it: &&Attempt| {
            it.kind == Kind::Work && (attempt.kind == Kind::Call || it.task == attempt.task)
        };
        let mut works = self.attempts.iter().filter(is_meant);
        let is_call = attempt.kind == Kind::Call;
        match &answer.outcome {
            Outcome::Value(serial, item) => {
                let is_item = !is_call || attempt.item == *item;
                is_item && works.any(|it| it.item == *item && it.effects.contains(serial))
            }
            Outcome::Failure(_) | Outcome::CutOff => works.any(|it| it.claimed.is_some()),
            Outcome::NeverStarted => is_call || works.all(|it| it.ran.is_none()),
            Outcome::Cancelled => {
                let mut attempts = self.attempts.iter();
                attempts.any(|it| it.kind == Kind::Cancel && it.task == attempt.task)
            }
            Outcome::IdReused => {
                let others = self.attempts.iter().filter(|it| it.item != attempt.item);
                let mut claims = others.filter_map(|it| it.claimed);
                is_call && claims.any(|claimed| claimed <= at)
            }
            Outcome::Task(_) => is_call,
            Outcome::Running => true,
            // Nothing ran for this call, nor will it.
            Outcome::Unprotected if is_call => {
                let mut works = attempt.task.iter().flat_map(|it| self.works(it));
                works.all(|it| it.ran.is_none())
            }
            Outcome::Unprotected => attempt.ran.is_none(),
            // A repeated call has replaced the task, or it was withdrawn.
            Outcome::NoTask => {
                let calls = self.attempts.iter().filter(|it| it.kind == Kind::Call);
                let claims = calls.clone().filter(|it| it.claimed.is_some());
                claims.count() > 1 || calls.clone().any(|it| it.released.is_some())
            }
            Outcome::Done => !is_call && attempt.kind != Kind::Get,
            Outcome::Unknown => false,
        }
    }
}
