//! Makes plans from seeds.

use std::time::Duration;

use fastrand::Rng;

use super::{
    AttemptPlan, Behavior, ClientPlan, Death, FAULTS, Fault, Freeze, Pause, Plan, Policy, STEPS,
    StoreFault,
};
use crate::history::Request;

impl Plan {
    /// Makes a plan from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let policy = match rng.u32(0..20) {
            0 => Policy::Idempotent,
            1..10 => Policy::AtMostOnce,
            _ => Policy::Recorded,
        };
        let limit = Duration::from_millis(rng.u64(350..500));
        let first = if policy != Policy::Idempotent && chance(&mut rng, 20) {
            overtaken(&mut rng)
        } else {
            attempt(&mut rng, 100, policy)
        };
        let second = attempt(&mut rng, 40, policy);
        let third = attempt(&mut rng, 15, policy);
        Self {
            seed,
            policy,
            limit,
            attempts: vec![first, second, third],
            clients: clients(&mut rng),
        }
    }
}

/// True with this probability in percent.
fn chance(rng: &mut Rng, percent: u32) -> bool {
    rng.u32(0..100) < percent
}

fn attempt(rng: &mut Rng, percent: u32, policy: Policy) -> AttemptPlan {
    let behavior = match rng.u32(0..100) {
        _ if policy == Policy::Idempotent => Behavior::Value,
        0..72 => Behavior::Value,
        72..79 => Behavior::Refuse,
        79..86 => Behavior::Busy,
        86..93 => Behavior::Panic,
        _ => Behavior::Hang,
    };
    let is_killed = chance(rng, 80) && chance(rng, percent);
    let death = death(rng);
    let fault = store_fault(rng);
    let mut faults = vec![fault];
    if chance(rng, 20) {
        faults.push(store_fault(rng));
    }
    let is_faulty = chance(rng, 60) && chance(rng, percent);
    AttemptPlan {
        death: is_killed.then_some(death),
        freeze: None,
        faults: if is_faulty { faults } else { Vec::new() },
        behavior,
    }
}

/// An attempt whose last requests reach the store after another attempt has claimed the call.
fn overtaken(rng: &mut Rng) -> AttemptPlan {
    // Before the other attempt has ended, and after it.
    let delay = Duration::from_millis([0, 5, 200][rng.usize(0..3)]);
    let behaviors = [
        Behavior::Value,
        Behavior::Value,
        Behavior::Busy,
        Behavior::Panic,
    ];
    let late = |request| StoreFault {
        request,
        count: 100,
        fault: Fault::Overtaken,
        delay,
    };
    let is_frozen = chance(rng, 50);
    // The steps at which the process waits. Anywhere else, its tool may have begun unseen, and then
    // nothing can prevent it from having its effect when the process continues.
    let step = STEPS[rng.usize(1..7)];
    AttemptPlan {
        death: None,
        freeze: is_frozen.then_some(Freeze { step, delay }),
        faults: if is_frozen {
            Vec::new()
        } else {
            vec![late(Request::Record), late(Request::Release)]
        },
        behavior: behaviors[rng.usize(0..4)],
    }
}

fn death(rng: &mut Rng) -> Death {
    let delay = match rng.u32(0..100) {
        0..60 => 0,
        60..92 => rng.u64(0..3000),
        _ => rng.u64(0..50_000),
    };
    let in_flight = chance(rng, 50).then(|| Duration::from_micros(rng.u64(0..30_000)));
    Death {
        step: STEPS[rng.usize(0..STEPS.len())],
        delay: Duration::from_micros(delay),
        in_flight,
    }
}

fn store_fault(rng: &mut Rng) -> StoreFault {
    let requests = [Request::Claim, Request::Record, Request::Release];
    let delay = match rng.u32(0..10) {
        0..5 => rng.u64(1..150),
        // Longer than the claim.
        5..8 => rng.u64(2300..3000),
        _ => rng.u64(150..600),
    };
    StoreFault {
        // Withdrawals are rarer than records.
        request: requests[[0, 0, 0, 1, 1, 1, 2][rng.usize(0..7)]],
        count: [1, 1, 2, 2, 100][rng.usize(0..5)],
        fault: FAULTS[rng.usize(0..FAULTS.len())],
        delay: Duration::from_millis(delay),
    }
}

fn clients(rng: &mut Rng) -> Vec<ClientPlan> {
    let mut clients = vec![client(rng, 0, 0)];
    if chance(rng, 30) {
        // At once, or a little later.
        let begin = [0, 0, 1, 3, 30, 200][rng.usize(0..6)];
        clients.push(client(rng, 0, begin));
    }
    if chance(rng, 25) {
        // Another call with the same id.
        let begin = [0, 1, 10, 100, 500, 2600][rng.usize(0..6)];
        clients.push(client(rng, 1, begin));
    }
    clients
}

fn client(rng: &mut Rng, item: u32, begin: u64) -> ClientPlan {
    let pauses = (0..4).map(|_| match rng.u32(0..10) {
        0..4 => Pause::For(Duration::from_millis(rng.u64(1..300))),
        _ => Pause::UntilFree(rng.i64(-60..60)),
    });
    ClientPlan {
        item,
        begin: Duration::from_millis(begin),
        pauses: pauses.collect(),
    }
}
