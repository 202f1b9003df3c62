//! Carries out the plan of a run.

mod planned;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use test_support::dynamodb::DynamoDb;
use tokio::task::JoinSet;

use crate::{
    history::{Answer, Attempt, Event, History, Serial, Time, What},
    instance::Instance,
    plan::{ClientPlan, Pause, Plan},
    store::Faults,
};

/// The table of calls.
pub(crate) const TABLE: &str = "calls";

/// The time after a call's deadline at which its claim becomes free, as documented.
pub(crate) const CLOCK_MARGIN: Duration = Duration::from_secs(2);

/// The most attempts of a client. Of these, an overloaded machine may need many: a function rejects
/// a call if the store takes half of the call's time.
const MOST_ATTEMPTS: usize = 30;

/// The time between two looks at what other attempts do.
const POLL: Duration = Duration::from_millis(5);

/// A run in progress.
pub(crate) struct Run {
    pub(crate) plan: Plan,
    pub(crate) function: PathBuf,
    begun: Instant,
    store: DynamoDb,
    events: Mutex<Vec<Event>>,
    effects: AtomicU64,
    attempts: Mutex<Attempts>,
    /// All processes, by their numbers.
    instances: Mutex<Vec<Arc<Instance>>>,
    /// The processes that are alive, as far as known, and have no event.
    idle: Mutex<Vec<Arc<Instance>>>,
    starting: tokio::sync::Mutex<()>,
    /// The number of requests and processes that wait until another attempt has claimed the call.
    waiting: AtomicUsize,
    /// True if no other attempt will claim it.
    is_closing: AtomicBool,
}

/// The attempts so far.
#[derive(Default)]
struct Attempts {
    count: usize,
    /// Those whose process was killed by the plan.
    dead: Vec<Attempt>,
    /// Those whose process stopped running.
    frozen: Vec<Attempt>,
    /// Those that have claimed the call.
    claimed: Vec<Attempt>,
    /// The time at which all claims are free.
    free_at: Time,
}

/// Carries out a plan with a function, and returns everything that happened.
///
/// # Panics
///
/// If the function does not start.
pub async fn run(plan: Plan, function: PathBuf) -> History {
    let faults = Arc::new(Faults::default());
    let run = Arc::new(Run {
        plan,
        function,
        begun: Instant::now(),
        store: DynamoDb::intercepted(TABLE, Arc::clone(&faults) as _).await,
        events: Mutex::default(),
        effects: AtomicU64::new(0),
        attempts: Mutex::default(),
        instances: Mutex::default(),
        idle: Mutex::default(),
        starting: tokio::sync::Mutex::default(),
        waiting: AtomicUsize::new(0),
        is_closing: AtomicBool::new(false),
    });
    let _ = faults.run.set(Arc::downgrade(&run));
    let mut clients = JoinSet::new();
    for plan in run.plan.clients.clone() {
        clients.spawn(client(Arc::clone(&run), plan));
    }
    clients.join_all().await;
    // Whatever happened, the first client's call can be repeated.
    let again = ClientPlan {
        begin: Duration::ZERO,
        ..run.plan.clients[0].clone()
    };
    client(Arc::clone(&run), again.clone()).await;
    run.is_closing.store(true, Ordering::Relaxed);
    while run.waiting.load(Ordering::Relaxed) > 0 {
        tokio::time::sleep(POLL).await;
    }
    // Nor does anything change that arrives late.
    client(Arc::clone(&run), again).await;
    run.idle.lock().unwrap().clear();
    // They refer to the run.
    let instances = std::mem::take(&mut *run.instances.lock().unwrap());
    for instance in instances {
        instance.end().await;
    }
    History(std::mem::take(&mut *run.events.lock().unwrap()))
}

/// Repeats a call until it has an outcome.
async fn client(run: Arc<Run>, plan: ClientPlan) {
    tokio::time::sleep(plan.begin).await;
    for number in 0..MOST_ATTEMPTS {
        let answer = run.attempt(plan.item).await;
        if answer.is_some_and(|answer| answer.outcome.is_final()) {
            return;
        }
        let pause = plan.pauses.get(number).copied();
        let pause = match pause.unwrap_or(Pause::UntilFree(20)) {
            Pause::For(time) => time,
            Pause::UntilFree(offset) => run.until_free(offset),
        };
        tokio::time::sleep(pause).await;
    }
    run.log(What::GaveUp(plan.item));
}

impl Run {
    pub(crate) fn log(&self, what: What) {
        let mut events = self.events.lock().unwrap();
        let at = self.begun.elapsed();
        events.push(Event { at, what });
    }

    pub(crate) fn store_url(&self) -> String {
        self.store.url()
    }

    pub(crate) fn call_id(&self) -> String {
        format!("call-{:x}", self.plan.seed)
    }

    pub(crate) fn instance(&self, number: usize) -> Option<Arc<Instance>> {
        self.instances.lock().unwrap().get(number).cloned()
    }

    /// The time from now until all claims are free, and this many milliseconds more or less.
    fn until_free(&self, offset: i64) -> Duration {
        let free_at = self.attempts.lock().unwrap().free_at;
        let left = free_at.saturating_sub(self.begun.elapsed());
        let offset_by = Duration::from_millis(offset.unsigned_abs());
        if offset < 0 {
            left.saturating_sub(offset_by)
        } else {
            left + offset_by
        }
    }

    /// Sends the call to a process; starts one if none is idle.
    async fn attempt(self: &Arc<Self>, item: u32) -> Option<Answer> {
        let instance = self.idle_instance().await;
        let attempt = {
            let mut attempts = self.attempts.lock().unwrap();
            attempts.count += 1;
            attempts.count - 1
        };
        let answer = instance.invoke(attempt, item).await;
        if instance.is_alive().await {
            self.idle.lock().unwrap().push(instance);
        }
        answer
    }

    async fn idle_instance(self: &Arc<Self>) -> Arc<Instance> {
        loop {
            let idle = self.idle.lock().unwrap().pop();
            match idle {
                Some(instance) if instance.is_alive().await => return instance,
                Some(_) => {}
                None => break,
            }
        }
        // One at a time, so that the numbers are in order.
        let _starting = self.starting.lock().await;
        let number = self.instances.lock().unwrap().len();
        let instance = Instance::start(self, number).await;
        self.instances.lock().unwrap().push(Arc::clone(&instance));
        instance
    }

    /// Logs that a process received an event.
    pub(crate) fn delivered(&self, attempt: Attempt, instance: usize, item: u32) {
        let deadline = self.begun.elapsed() + self.plan.limit;
        {
            let free_at = &mut self.attempts.lock().unwrap().free_at;
            *free_at = (*free_at).max(deadline + CLOCK_MARGIN);
        }
        self.log(What::Delivered {
            attempt,
            instance,
            item,
            deadline,
        });
    }

    /// Lets an effect happen.
    pub(crate) fn new_effect(&self, attempt: Attempt, item: u32) -> Serial {
        let serial = self.effects.fetch_add(1, Ordering::Relaxed);
        self.log(What::EffectApplied(attempt, item, serial));
        serial
    }
}
