//! Kills a function at every step of a call, and checks that the call has one effect.
//!
//! Every step of a call can be seen from outside of its process: the event, the requests to the
//! store, the request for the effect, and the response all reach servers of this program. So the
//! function needs no code for these tests, and is killed exactly between two steps. Each run has a
//! plan, made from a seed, and a history, which the rules of [`check`](mod@check) are applied to.

mod attempt;
mod check;
mod history;
mod invoke;
mod plan;
mod rules;
mod run;
mod store;

use std::{
    collections::BTreeSet,
    env,
    path::PathBuf,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::{sync::Semaphore, task::JoinSet};

use plan::{Plan, STEPS, Step};

/// The number of runs at the same time: most of a run's time is the wait for a claim to become free.
const CONCURRENCY: usize = 40;

/// The number of broken runs after which no more are started.
const ENOUGH: usize = 5;

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

/// `RUNS` sets the number of runs, and `SEED` the first seed, which otherwise differs each time.
#[tokio::test]
async fn a_call_has_one_effect_wherever_its_process_dies() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let first = number("SEED").unwrap_or(now.as_secs() * 1000);
    let count = number("RUNS").unwrap_or(200);
    println!("{count} runs from seed {first}");
    let function = PathBuf::from(env!("CARGO_BIN_EXE_crashes_function"));
    let permits = Arc::new(Semaphore::new(CONCURRENCY));
    let (mut runs, mut broken, mut deaths) = (JoinSet::new(), 0, BTreeSet::new());
    // On a busy machine, fewer runs get as far as their step: then there are more of them.
    let mut seeds = first..first + 4 * count;
    loop {
        let is_done = |seed: &u64| seed - first >= count && has_all(count, &deaths);
        let seed = seeds.next().filter(|it| broken < ENOUGH && !is_done(it));
        if let Some(seed) = seed {
            let permit = Arc::clone(&permits).acquire_owned().await;
            let (plan, function) = (Plan::new(seed), function.clone());
            runs.spawn(async move {
                let _permit = permit;
                let history = run::run(plan.clone(), function).await;
                (seed, plan, history)
            });
        }
        while let Some(ended) = match seed {
            Some(_) => runs.try_join_next(),
            None => runs.join_next().await,
        } {
            let (seed, plan, history) = ended.unwrap();
            deaths.extend(history.attempts.iter().filter_map(|it| it.died));
            let violations = check::check(&plan, &history);
            if !violations.is_empty() {
                broken += 1;
                println!("seed {seed}: {violations:?}\n{plan:#?}\n{history:#?}");
            }
        }
        if seed.is_none() {
            break;
        }
    }
    assert_eq!(broken, 0, "see the histories above");
    // So many runs reach every step.
    assert!(has_all(count, &deaths), "{deaths:?}");
}

/// Returns true if processes have died at every step, or if there are too few runs for that.
fn has_all(count: u64, deaths: &BTreeSet<Step>) -> bool {
    count < 200 || deaths.len() == STEPS.len()
}
