//! Many runs at the same time: most of a run's time is the wait for a claim to become free.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::{runtime::Builder, task::JoinSet};

use crate::{
    checker::{Violation, check},
    history::History,
    plan::Plan,
    run::run,
    summary::Summary,
};

/// The runs to carry out.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The function.
    pub function: PathBuf,
    /// The seed of the first run; each following one is one greater.
    pub seed: u64,
    /// The number of runs.
    pub runs: u64,
    /// The number of threads. Each run stays on its thread, so that its history is in order.
    pub threads: usize,
    /// The number of runs at the same time on a thread.
    pub concurrency: usize,
}

/// A run that broke promises.
#[derive(Debug)]
pub struct BrokenRun {
    /// The plan.
    pub plan: Plan,
    /// The history.
    pub history: History,
    /// The promises.
    pub violations: Vec<Violation>,
    /// The number of runs that had ended, with this one.
    pub after: u64,
    /// The time since the first run began.
    pub time: Duration,
}

/// The number of broken runs after which no more are started.
const ENOUGH: usize = 5;

/// The state that the threads share.
struct Shared {
    campaign: Campaign,
    next: AtomicU64,
    summary: Mutex<Summary>,
    begun: Instant,
}

impl Campaign {
    /// Carries out all runs.
    #[must_use]
    pub fn run(self) -> Summary {
        let threads = self.threads;
        let shared = Arc::new(Shared {
            next: AtomicU64::new(0),
            campaign: self,
            summary: Mutex::default(),
            begun: Instant::now(),
        });
        let threads: VecDeque<_> = (0..threads)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(work(&shared));
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let summary = &mut *shared.summary.lock().unwrap();
        std::mem::take(summary)
    }
}

async fn work(shared: &Arc<Shared>) {
    let mut runs = JoinSet::new();
    for _ in 0..shared.campaign.concurrency {
        let shared = Arc::clone(shared);
        runs.spawn(async move {
            loop {
                let number = shared.next.fetch_add(1, Ordering::Relaxed);
                if number >= shared.campaign.runs || shared.has_enough() {
                    return;
                }
                shared.run_one(number).await;
            }
        });
    }
    runs.join_all().await;
}

impl Shared {
    fn has_enough(&self) -> bool {
        self.summary.lock().unwrap().broken.len() >= ENOUGH
    }

    async fn run_one(&self, number: u64) {
        let plan = Plan::new(self.campaign.seed.wrapping_add(number));
        let history = run(plan.clone(), self.campaign.function.clone()).await;
        let violations = check(&plan, &history);
        let mut summary = self.summary.lock().unwrap();
        summary.add(&plan, &history);
        if !violations.is_empty() {
            let (after, time) = (summary.runs, self.begun.elapsed());
            summary.broken.push(BrokenRun {
                plan,
                history,
                violations,
                after,
                time,
            });
        }
    }
}
