//! Carries out the plan of a run.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use test_support::{dynamodb::DynamoDb, lambda::Platform};
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    attempt::{Event, Process, serve_effects},
    history::{Answer, Attempt, History, Outcome, Time},
    invoke::serve_events,
    plan::{AttemptPlan, ClientPlan, Plan},
    store::Faults,
};

/// The table of calls.
pub(crate) const TABLE: &str = "calls";

/// The time after a call's deadline at which its claim becomes free, as documented.
pub(crate) const CLOCK_MARGIN: Duration = Duration::from_secs(2);

/// The most attempts of a client. Of these, an overloaded machine may need many: a function rejects
/// a call if the store takes half of the call's time.
const MOST_ATTEMPTS: usize = 30;

/// A run in progress.
pub(crate) struct Run {
    pub(crate) plan: Plan,
    pub(crate) function: PathBuf,
    pub(crate) begun: Instant,
    pub(crate) store: DynamoDb,
    pub(crate) effects_at: SocketAddr,
    /// The platform's own API.
    pub(crate) platform_at: SocketAddr,
    /// The number of events that start tasks.
    pub(crate) events: AtomicUsize,
    pub(crate) effects: AtomicU64,
    pub(crate) history: Mutex<History>,
    /// All processes, by their numbers.
    pub(crate) processes: Mutex<Vec<Process>>,
    /// The processes that are alive and have no event.
    pub(crate) idle: Mutex<Vec<(usize, Platform)>>,
    /// The number of requests and processes that go on later.
    late: AtomicUsize,
}

/// Carries out a plan with a function, and returns everything that happened.
pub(crate) async fn run(plan: Plan, function: PathBuf) -> History {
    let faults = Arc::new(Faults::default());
    let effects = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let platform = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let run = Arc::new(Run {
        plan,
        function,
        begun: Instant::now(),
        store: DynamoDb::intercepted(TABLE, Arc::clone(&faults) as _).await,
        effects_at: effects.local_addr().unwrap(),
        platform_at: platform.local_addr().unwrap(),
        events: AtomicUsize::new(0),
        effects: AtomicU64::new(0),
        history: Mutex::default(),
        processes: Mutex::default(),
        idle: Mutex::default(),
        late: AtomicUsize::new(0),
    });
    let _ = faults.run.set(Arc::downgrade(&run));
    let mut server = JoinSet::new();
    server.spawn(serve_effects(Arc::clone(&run), effects));
    server.spawn(serve_events(Arc::clone(&run), platform));
    let mut clients = JoinSet::new();
    for plan in run.plan.clients.clone() {
        clients.spawn(client(Arc::clone(&run), plan));
    }
    clients.join_all().await;
    // Whatever happened, the first client's call can be repeated. Nor does anything change that
    // happens late.
    let again = ClientPlan {
        begin: Duration::ZERO,
        ..run.plan.clients[0].clone()
    };
    client(Arc::clone(&run), again.clone()).await;
    while run.late.load(Ordering::Relaxed) > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client(Arc::clone(&run), again).await;
    server.shutdown().await;
    let idle = std::mem::take(&mut *run.idle.lock().unwrap());
    for (_, platform) in idle {
        run.end(platform);
    }
    std::mem::take(&mut run.history.lock().unwrap())
}

/// Repeats a call until it has an outcome.
async fn client(run: Arc<Run>, plan: ClientPlan) {
    tokio::time::sleep(plan.begin).await;
    for number in 0..MOST_ATTEMPTS {
        let answer = run.call(&plan).await;
        if answer.is_some_and(|answer| answer.outcome.is_final()) {
            return;
        }
        let first = Some(plan.pause).filter(|_| number == 0);
        tokio::time::sleep(first.unwrap_or_else(|| run.until_free())).await;
    }
    run.history.lock().unwrap().gave_up = true;
}

impl Run {
    /// Sends a call; if it becomes a task, asks for it until it has ended.
    async fn call(self: &Arc<Self>, client: &ClientPlan) -> Option<Answer> {
        let answer = self.attempt(Event::Call(client.item)).await?;
        let Outcome::Task(task) = &answer.outcome else {
            return Some(answer);
        };
        if let Some(time) = client.cancels {
            tokio::time::sleep(time).await;
            self.attempt(Event::Cancel(task.clone())).await;
        }
        let mut pause = Duration::from_millis(20);
        loop {
            let is_idle = self.late.load(Ordering::Relaxed) == 0 && self.is_over(task);
            let status = self.attempt(Event::Get(task.clone())).await;
            match status.as_ref().map(|it| &it.outcome) {
                None | Some(Outcome::Running | Outcome::Unprotected) if !is_idle => {}
                Some(Outcome::Running) => {
                    self.history.lock().unwrap().stuck.push(task.clone());
                    return Some(answer);
                }
                _ => return status,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(300));
        }
    }

    /// Returns true if a task has not started, or its time is over.
    fn is_over(&self, task: &str) -> bool {
        let history = self.history.lock().unwrap();
        let mut works = history.attempts.iter().filter(|it| it.is_work_of(task));
        works.all(|it| it.claimed.is_none() || it.deadline + 2 * CLOCK_MARGIN < self.now())
    }

    /// Returns the plan of an attempt.
    pub(crate) fn plan_of(&self, attempt: usize) -> AttemptPlan {
        self.history.lock().unwrap().attempts[attempt].plan.clone()
    }

    fn now(&self) -> Time {
        self.begun.elapsed()
    }

    /// Adds a fact about an attempt.
    pub(crate) fn note(&self, attempt: usize, add: impl FnOnce(&mut Attempt, Time)) {
        let now = self.now();
        add(&mut self.history.lock().unwrap().attempts[attempt], now);
    }

    /// Returns the time until all claims are free.
    fn until_free(&self) -> Duration {
        let history = self.history.lock().unwrap();
        let planned = history.attempts.iter().filter(|it| it.kind.is_planned());
        let deadlines = planned.map(|it| it.deadline);
        let free_at = deadlines.max().unwrap_or_default() + CLOCK_MARGIN;
        free_at.saturating_sub(self.now()) + Duration::from_millis(20)
    }

    /// Carries out something that the run's end must wait for.
    pub(crate) fn late<T, F: Future<Output = T>>(
        self: &Arc<Self>,
        work: F,
    ) -> impl Future<Output = T> + use<T, F> {
        let run = Arc::clone(self);
        self.late.fetch_add(1, Ordering::Relaxed);
        async move {
            let result = work.await;
            run.late.fetch_sub(1, Ordering::Relaxed);
            result
        }
    }

    /// Kills a process, and waits until it is dead.
    pub(crate) fn end(&self, mut platform: Platform) {
        // It ended by itself, which no run permits.
        let status = platform.function.child.try_wait();
        if status.is_ok_and(|status| status.is_some()) {
            self.history.lock().unwrap().exited = true;
        }
        platform.end();
    }
}
