//! The plan of a run: which process dies at which step, and what happens to the store's requests.
//!
//! A plan is made from a seed alone, so that a seed repeats a run, except for the timing.

use std::time::Duration;

use fastrand::Rng;
use test_support::dynamodb::{Fault as Error, OnRequest, OnResponse};

/// The policy of the tool for repeated calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Recorded,
    /// `Tool::run_at_most_once`.
    AtMostOnce,
}

/// The share of the plans with tasks.
const PERCENT_TASKS: u32 = 30;

/// A step of an attempt at which its process may die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The function has received the event.
    Delivered,
    /// The store has received the claim, or the start of a task.
    BeforeClaim,
    /// The store has written it, and has not responded.
    AfterClaim,
    /// The platform has received the event that starts a task.
    BeforeInvoke,
    /// The platform has accepted it, and has not responded.
    AfterInvoke,
    /// The request for the effect has arrived.
    InTool,
    /// The effect has happened, and the tool does not know.
    AfterEffect,
    /// The store has received the outcome, or the withdrawal of the claim.
    BeforeRecord,
    /// The store has applied it, and has not responded.
    AfterRecord,
    /// The platform has received the response, and drops it.
    BeforeAnswer,
    /// The platform has accepted the response.
    AfterAnswer,
}

/// All steps, in their order.
pub(crate) const STEPS: [Step; 11] = [
    Step::Delivered,
    Step::BeforeClaim,
    Step::AfterClaim,
    Step::BeforeInvoke,
    Step::AfterInvoke,
    Step::InTool,
    Step::AfterEffect,
    Step::BeforeRecord,
    Step::AfterRecord,
    Step::BeforeAnswer,
    Step::AfterAnswer,
];

/// The steps of a call that becomes a task, with those that only such a call has twice.
const OF_HAND_OVER: [Step; 9] = [
    Step::BeforeClaim,
    Step::AfterClaim,
    Step::BeforeInvoke,
    Step::BeforeInvoke,
    Step::AfterInvoke,
    Step::AfterInvoke,
    Step::Delivered,
    Step::BeforeAnswer,
    Step::AfterAnswer,
];

/// The steps of any other attempt.
const OF_RUN: [Step; 9] = [
    Step::BeforeClaim,
    Step::AfterClaim,
    Step::InTool,
    Step::AfterEffect,
    Step::BeforeRecord,
    Step::AfterRecord,
    Step::Delivered,
    Step::BeforeAnswer,
    Step::AfterAnswer,
];

/// The purpose of a request to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Request {
    /// Writes the claim, or the start of a task.
    Claim,
    /// Writes the outcome.
    Record,
    /// Reads a task.
    Read,
    /// Deletes the claim.
    Release,
}

/// The treatment of a request to the store, or of its response, after a delay.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Of the request.
    Before(OnRequest),
    /// Of the response, after the request was applied.
    After(OnResponse),
}

const FAULTS: [Fault; 11] = [
    // Late, when the client may have given up.
    Fault::Before(OnRequest::Apply),
    Fault::Before(OnRequest::ApplyTwice),
    Fault::Before(OnRequest::Lose),
    Fault::Before(OnRequest::Ignore),
    Fault::Before(OnRequest::Fail(Error::Internal)),
    Fault::Before(OnRequest::Fail(Error::ThroughputExceeded)),
    Fault::Before(OnRequest::Fail(Error::Throttling)),
    Fault::After(OnResponse::Send),
    Fault::After(OnResponse::Lose),
    Fault::After(OnResponse::Ignore),
    Fault::After(OnResponse::Fail(Error::Unavailable)),
];

/// A fault of some of the requests of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreFault {
    pub(crate) request: Request,
    /// The number of requests, because a client may try again.
    pub(crate) count: usize,
    pub(crate) fault: Fault,
    /// The delay before it.
    pub(crate) delay: Duration,
}

/// The response of the server of effects to a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    #[default]
    /// The effect happens, and the tool returns a value.
    Value,
    /// No effect; the tool returns a failure that may not be retried.
    Refuse,
    /// No effect; the tool returns a failure that may be retried.
    Busy,
    /// The effect happens, and the tool panics.
    Panic,
    /// The effect happens, and the tool never returns.
    Hang,
}

/// The end of a process, or its suspension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    /// The step at which the process is killed or stopped.
    pub(crate) step: Step,
    /// The time after the death at which a request is applied that was on its way. `None` if it is
    /// lost.
    pub(crate) in_flight: Option<Duration>,
    /// The time after which the process runs again, as on a machine that was suspended. `None` if it
    /// is killed.
    pub(crate) frozen: Option<Duration>,
}

/// The plan of an attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptPlan {
    pub(crate) death: Option<Death>,
    pub(crate) faults: Vec<StoreFault>,
    pub(crate) behavior: Behavior,
}

/// A client that repeats its call until it has an outcome, as an agent does.
#[derive(Clone, Debug)]
pub(crate) struct ClientPlan {
    pub(crate) item: u32,
    pub(crate) begin: Duration,
    /// The pause after its first attempt; after the others, it waits until all claims are free.
    pub(crate) pause: Duration,
    /// The time after which it cancels its task.
    pub(crate) cancels: Option<Duration>,
}

/// The deliveries of events that start tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskPlan {
    /// For each event, the times after which it is delivered: perhaps twice, perhaps never. All others
    /// are delivered once.
    pub(crate) deliveries: Vec<Vec<Duration>>,
    /// The deliveries that follow one that fails.
    pub(crate) retries: usize,
    /// The events that are accepted first, and whose sender is not told.
    pub(crate) unconfirmed: usize,
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) policy: Policy,
    /// `None` if the calls run in their requests.
    pub(crate) tasks: Option<TaskPlan>,
    /// The time limit of the platform for each attempt.
    pub(crate) limit: Duration,
    /// The first attempts, in the order of their delivery; all others are clean.
    pub(crate) attempts: Vec<AttemptPlan>,
    /// The clients, which all use the same `call_id`.
    pub(crate) clients: Vec<ClientPlan>,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let policies = [Policy::Recorded, Policy::AtMostOnce];
        let tasks = chance(rng, PERCENT_TASKS).then(|| tasks(rng));
        // A call hands a task over, and another attempt does its work.
        let attempts: &[_] = if tasks.is_some() {
            &[(70, OF_HAND_OVER), (90, OF_RUN), (50, OF_RUN), (30, OF_RUN)]
        } else {
            &[(100, OF_RUN), (40, OF_RUN), (15, OF_RUN)]
        };
        Self {
            policy: pick(rng, &policies),
            // An MCP call that is handed over has more to do.
            limit: ms(rng, 350, 500) * if tasks.is_some() { 2 } else { 1 },
            attempts: attempts
                .iter()
                .map(|(percent, steps)| attempt(rng, *percent, steps))
                .collect(),
            clients: clients(rng, tasks.is_some()),
            tasks,
        }
    }
}

/// Makes the plan of the deliveries of events.
fn tasks(rng: &mut Rng) -> TaskPlan {
    let mut event = || {
        let (soon, late) = (ms(rng, 0, 30), ms(rng, 300, 1500));
        let all = [
            &[][..],
            &[soon],
            &[soon],
            &[late],
            &[soon, soon],
            &[soon, late],
        ];
        pick(rng, &all).to_vec()
    };
    TaskPlan {
        deliveries: vec![event(), event()],
        retries: pick(rng, &[0, 1, 2]),
        // The client sends an event twice.
        unconfirmed: pick(rng, &[0, 0, 0, 0, 1, 2]),
    }
}

/// Returns true with this probability in percent.
fn chance(rng: &mut Rng, percent: u32) -> bool {
    rng.u32(0..100) < percent
}

fn pick<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(0..all.len())]
}

fn ms(rng: &mut Rng, from: u64, to: u64) -> Duration {
    Duration::from_millis(rng.u64(from..to))
}

/// Makes the plan of an attempt in which something goes wrong with this probability.
fn attempt(rng: &mut Rng, percent: u32, steps: &[Step]) -> AttemptPlan {
    use Behavior::{Busy, Hang, Panic, Refuse, Value};
    let count = rng.usize(1..3) * usize::from(chance(rng, percent * 6 / 10));
    AttemptPlan {
        death: chance(rng, percent * 8 / 10).then(|| death(rng, steps)),
        faults: (0..count).map(|_| store_fault(rng)).collect(),
        behavior: pick(
            rng,
            &[
                Value, Value, Value, Value, Value, Value, Refuse, Busy, Panic, Hang,
            ],
        ),
    }
}

fn death(rng: &mut Rng, steps: &[Step]) -> Death {
    // A frozen process is at a step at which it waits. Anywhere else, its tool may have begun unseen,
    // and then nothing can prevent its effect when the process continues.
    let is_frozen = chance(rng, 15);
    let steps = if is_frozen { &steps[..6] } else { steps };
    Death {
        step: pick(rng, steps),
        in_flight: chance(rng, 50).then(|| ms(rng, 0, 30)),
        frozen: is_frozen.then(|| ms(rng, 2300, 3000)),
    }
}

fn store_fault(rng: &mut Rng) -> StoreFault {
    use Request::{Claim, Read, Record, Release};
    // Longer than the claim is held, too.
    let (short, long) = (ms(rng, 0, 150), ms(rng, 2300, 3000));
    StoreFault {
        // Withdrawals are rarer than records, and only tasks are read.
        request: pick(
            rng,
            &[Claim, Claim, Claim, Record, Record, Record, Release, Read],
        ),
        count: pick(rng, &[1, 1, 2, 2, 100]),
        fault: pick(rng, &FAULTS),
        delay: pick(rng, &[Duration::ZERO, short, short, long]),
    }
}

/// Makes one client; also one that sends the same call at once or a little later, or one that sends
/// another call with the same id.
fn clients(rng: &mut Rng, have_tasks: bool) -> Vec<ClientPlan> {
    let mut client = |item, begins: &[u64]| ClientPlan {
        item,
        begin: Duration::from_millis(pick(rng, begins)),
        pause: ms(rng, 1, 300),
        cancels: (have_tasks && chance(rng, 20)).then(|| ms(rng, 0, 300)),
    };
    let all = [
        client(0, &[0]),
        client(0, &[0, 0, 1, 3, 30, 200]),
        client(1, &[0, 1, 10, 100, 500, 2600]),
    ];
    let others = [true, chance(rng, 30), chance(rng, 25)];
    let chosen = all
        .into_iter()
        .zip(others)
        .filter(|(_, is_chosen)| *is_chosen);
    chosen.map(|(client, _)| client).collect()
}
