//! Tasks: calls that outlast their requests, and what becomes of them.
//!
//! A task is the record of a call, under the same key, so that a repeated call finds it. Whoever
//! does the work starts it once, however often it is asked to.

use std::time::{Duration, SystemTime};

use super::{CLOCK_MARGIN, Claim, Deduplication, GRACE, RecordedOutcome, cut_off, is_over};
use crate::{
    Failure, StoreError,
    idempotency::{
        CallRecord, CallState,
        record::{TaskRecord, encode},
    },
    store::{self, Change, update},
    tool::reason::Reason,
};

/// The time within which a task has to start.
pub const LONGEST_QUEUE: Duration = Duration::from_mins(5);

/// The time from which a record is free that is free by any clock.
pub(super) const ALWAYS: SystemTime = SystemTime::UNIX_EPOCH;

/// The limits of the time after which an owner should ask again.
const SHORTEST_POLL: Duration = Duration::from_secs(1);
const LONGEST_POLL: Duration = Duration::from_secs(10);

/// The id of a task: the key of its record, and a random part.
pub struct TaskId {
    /// The key of the record: 64 hexadecimal digits.
    pub key: String,
    /// Hexadecimal digits that cannot be guessed.
    pub random: String,
}

/// A task to be created.
pub struct NewTask {
    /// The random part of its id.
    pub random: String,
    /// A hash of the caller and the user; see [`owner_of`](crate::idempotency::owner_of).
    pub owner: String,
    /// The id of the tool.
    pub tool: String,
    /// The call, encrypted.
    pub sealed: Vec<u8>,
    /// The time that its tool may take.
    pub limit: Duration,
}

/// A task as its owner sees it.
pub struct Task {
    /// The id that its owner asks with.
    pub id: TaskId,
    /// The id of the tool.
    pub tool: String,
    /// The time of the call.
    pub created_at: SystemTime,
    /// The time of the last change of the record.
    pub updated_at: SystemTime,
    /// The time for which the record is kept, from its creation.
    pub ttl: Duration,
    /// The time after which its owner should ask again: the older the task, the longer.
    pub poll_after: Duration,
    /// The last message that the tool has reported.
    pub message: Option<String>,
    /// What has become of it.
    pub state: TaskState,
}

/// What has become of a task.
pub enum TaskState {
    /// It waits to start, or runs.
    Working,
    /// The tool has returned a value or a failure.
    Ended(RecordedOutcome),
    /// The task did not end by itself.
    Lost(Failure),
    /// It was cancelled before it ended.
    Cancelled,
}

/// The reason why a task does not start.
#[derive(Debug)]
pub enum NotStarted {
    /// It has started before, it was cancelled, or its time is over.
    TooLate,
    /// There is no such task.
    Unknown,
    /// The store does not say.
    Undecided(StoreError),
}

impl From<StoreError> for NotStarted {
    fn from(error: StoreError) -> Self {
        Self::Undecided(error)
    }
}

impl TaskId {
    /// Parses an id, in which the key has 64 digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|it| it.is_ascii_hexdigit());
        let (key, random) = text.split_at_checked(64).filter(|_| is_hex)?;
        let (key, random) = (key.to_owned(), random.to_owned());
        Some(Self { key, random })
    }
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.key, self.random)
    }
}

impl NewTask {
    /// Makes the claim of a call the record of a task.
    pub(super) fn turn(&self, claim: &mut CallRecord, now: SystemTime, kept_for: Duration) {
        // Until it starts, nothing has run: the call may be repeated afterwards.
        let until = now + LONGEST_QUEUE;
        claim.state = CallState::Running { until };
        claim.free_at = until + CLOCK_MARGIN;
        claim.expires_at = until + self.limit + kept_for;
        claim.task = Some(Box::new(TaskRecord {
            id: self.random.clone(),
            owner: self.owner.clone(),
            tool: self.tool.clone(),
            created_at: now,
            updated_at: now,
            message: None,
            is_cancelled: false,
            sealed: Some(self.sealed.clone()),
        }));
    }
}

impl CallRecord {
    /// Returns what another record says about the same task, if it is still running.
    pub(super) fn task_in(&self, current: store::Record) -> Option<Self> {
        let current = Self::from_stored(current).ok()?;
        let is_same = current.task.as_ref()?.id == self.task.as_ref()?.id;
        (is_same && current.state.is_running()).then_some(current)
    }

    /// Returns the task, as its owner sees it at `now`.
    pub(super) fn as_task(&self, key: &str, now: SystemTime) -> Option<Task> {
        let task = self.task.as_deref()?;
        Some(Task {
            id: TaskId {
                key: key.to_owned(),
                random: task.id.clone(),
            },
            tool: task.tool.clone(),
            created_at: task.created_at,
            updated_at: task.updated_at,
            ttl: since(self.expires_at, task.created_at),
            poll_after: since(now, task.created_at).clamp(SHORTEST_POLL, LONGEST_POLL),
            message: task.message.clone(),
            state: self.task_state(task),
        })
    }

    fn task_state(&self, task: &TaskRecord) -> TaskState {
        let outcome = match &self.state {
            CallState::Running { .. } => return TaskState::Working,
            CallState::OutcomeDropped if task.is_cancelled => return TaskState::Cancelled,
            state => state.outcome(),
        };
        match outcome.result {
            Err(failure) if failure.parts().reason == Reason::CutOff => TaskState::Lost(failure),
            Err(_) if task.is_cancelled => TaskState::Cancelled,
            Err(failure) if [Reason::Panicked, Reason::Lost].contains(&failure.parts().reason) => {
                TaskState::Lost(failure)
            }
            result => TaskState::Ended(RecordedOutcome { result, ..outcome }),
        }
    }

    /// Ends a task that has not ended by itself. Another call may replace the record, unless the tool
    /// must not run twice, and may have run. Returns false if this is no task.
    pub(super) fn end(&mut self) -> bool {
        let Some(task) = &mut self.task else {
            return false;
        };
        let has_started = task.sealed.take().is_none();
        if !has_started || !self.at_most_once {
            self.free_at = ALWAYS;
        }
        let failure = if has_started {
            cut_off()
        } else {
            never_started()
        };
        self.state = CallState::Finished(encode(Duration::ZERO, &Err(failure)));
        true
    }

    /// Ends a task whose time is over.
    fn end_if_over(&mut self, now: SystemTime) -> bool {
        matches!(self.state, CallState::Running { until } if is_over(until, now)) && self.end()
    }

    /// Makes the record the next version of a task.
    pub(super) fn renew(&mut self, now: SystemTime) {
        self.claim = store::new_version();
        if let Some(task) = &mut self.task {
            task.updated_at = now;
        }
    }

    /// Cancels a task that is working; one that has not started ends.
    fn cancel(&mut self) -> bool {
        let (Some(task), CallState::Running { .. }) = (&mut self.task, &self.state) else {
            return false;
        };
        let is_new = !std::mem::replace(&mut task.is_cancelled, true);
        if task.sealed.take().is_some() {
            (self.state, self.free_at) = (CallState::OutcomeDropped, ALWAYS);
        }
        is_new
    }
}

impl Deduplication {
    /// Returns a task of this owner, which is cancelled first if `cancels` says so: one that has not
    /// started never runs, and the tool of one that runs is told. `None` also for those of others.
    ///
    /// That a task is lost is recorded before anyone is told, because a task ends once: its worker may
    /// have been suspended, or its last request may still be on its way.
    pub async fn task(
        &self,
        id: &TaskId,
        owner: &str,
        cancels: bool,
    ) -> Result<Option<Task>, StoreError> {
        let is_owned = |it: &CallRecord| it.task.as_ref().is_some_and(|it| it.owner == owner);
        let change = |record: &mut CallRecord, now| {
            is_owned(record) && (record.end_if_over(now) || cancels && record.cancel())
        };
        let record = self.change(id, change).await?.filter(is_owned);
        Ok(record.and_then(|it| it.as_task(&id.key, self.clock.now())))
    }

    /// Starts a task, once. `open` decrypts the call, and returns how long its tool may take from now.
    pub async fn start<T>(
        &self,
        id: &TaskId,
        deadline: Option<SystemTime>,
        open: impl Fn(&[u8]) -> Option<(T, Duration)>,
    ) -> Result<(Claim, T), NotStarted> {
        let mut started = Err(NotStarted::Unknown);
        let change = |record: &mut CallRecord, now| {
            started = Err(NotStarted::TooLate);
            let task = record.task.as_mut();
            let in_time = task.filter(|it| now <= it.created_at + LONGEST_QUEUE);
            let Some(sealed) = in_time.and_then(|it| it.sealed.take()) else {
                return false;
            };
            let Some((call, limit)) = open(&sealed) else {
                started = Err(NotStarted::Unknown);
                return false;
            };
            // The outcome is recorded after the tool's time.
            let until = now + limit + self.idempotency.timeout + GRACE;
            let until = deadline.map_or(until, |it| it.min(until));
            record.state = CallState::Running { until };
            record.free_at = if record.at_most_once {
                record.expires_at
            } else {
                until + CLOCK_MARGIN
            };
            started = Ok(call);
            true
        };
        let changed = self.change(id, change).await?;
        let claim = Claim {
            key: id.key.clone(),
            record: changed.ok_or(NotStarted::Unknown)?,
            expire_after: self.idempotency.expire_after,
            deadline,
        };
        started.map(|call| (claim, call))
    }

    /// Records what a running task has reported, if anything, and returns true if it is cancelled.
    pub async fn note(
        &self,
        claim: &mut Claim,
        message: Option<String>,
    ) -> Result<bool, StoreError> {
        let Some(Task { id, .. }) = claim.task(self.clock.now()) else {
            return Ok(false);
        };
        let note = |record: &mut CallRecord, _| match &mut record.task {
            Some(task) if message.is_some() && record.state.is_running() => {
                task.message.clone_from(&message);
                true
            }
            _ => false,
        };
        // Somebody else may have changed the task: cancelled it, or ended it.
        let current = self.change(&id, note).await?;
        if let Some(record) = current.filter(|it| it.state.is_running()) {
            claim.record = record;
        }
        let task = claim.record.task.as_ref();
        Ok(task.is_some_and(|it| it.is_cancelled))
    }

    /// Lets `change` change a task, which is written if that returns true. Returns its record; `None`
    /// if there is no such task.
    async fn change(
        &self,
        id: &TaskId,
        mut change: impl FnMut(&mut CallRecord, SystemTime) -> bool,
    ) -> Result<Option<CallRecord>, StoreError> {
        if !self.is_on() {
            return Ok(None);
        }
        let decide = |stored: Option<store::Record>| {
            let now = self.clock.now();
            let has_id = |it: &CallRecord| it.task.as_ref().is_some_and(|it| it.id == id.random);
            let mut record = match stored.map(CallRecord::from_stored).transpose() {
                Ok(Some(record)) if has_id(&record) && now < record.expires_at => record,
                Ok(_) => return Change::Leave(Ok(None)),
                Err(error) => return Change::Leave(Err(error)),
            };
            if !change(&mut record, now) {
                return Change::Leave(Ok(Some(record)));
            }
            record.renew(now);
            Change::Write(record.clone().into_stored(), Ok(Some(record)))
        };
        let (timeout, now) = (self.idempotency.timeout, self.clock.now());
        update(self.store(), &id.key, now, timeout, decide).await?
    }
}

impl Claim {
    /// Returns the task of a claim, if it is one.
    pub fn task(&self, now: SystemTime) -> Option<Task> {
        self.record.as_task(&self.key, now)
    }
}

fn since(later: SystemTime, earlier: SystemTime) -> Duration {
    later.duration_since(earlier).unwrap_or_default()
}

fn never_started() -> Failure {
    Failure::internal(
        Reason::Lost,
        "The task did not start in time, and nothing was run",
    )
    .developer_message("The event that starts the task was not delivered in time.")
}
