//! A process of the function, under a runtime API and with a server of effects of its own.

mod effects;
mod runtime_api;

use std::{
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use test_support::{
    isolated,
    lambda::{LAMBDA, RUNTIME},
};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    sync::{Notify, mpsc, oneshot},
    task::JoinSet,
};

use crate::{
    history::{Answer, Attempt, Kill, What},
    plan::Step,
    run::Run,
};
use effects::serve_effects;
use runtime_api::serve_api;

/// The longest time that a process may take to start.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The time for which a process that was frozen runs before the platform kills it: longer than it
/// takes to settle a claim.
const LAST_WORK: Duration = Duration::from_millis(400);

/// A process of the function.
pub(crate) struct Instance {
    pub(crate) number: usize,
    run: Arc<Run>,
    child: tokio::sync::Mutex<Option<Child>>,
    events: mpsc::UnboundedSender<Invocation>,
    /// The attempt in progress, or the last one.
    attempt: Mutex<Option<Attempt>>,
    /// Gets the response to the attempt in progress.
    client: Mutex<Option<oneshot::Sender<Answer>>>,
    is_started: Notify,
    /// True if it has stopped running for some time. The platform sends it no further event.
    was_frozen: AtomicBool,
    servers: Mutex<JoinSet<()>>,
}

/// An event for the process.
struct Invocation {
    attempt: Attempt,
    item: u32,
    client: oneshot::Sender<Answer>,
}

impl Instance {
    /// Starts a process, and waits until it asks for an event.
    pub(crate) async fn start(run: &Arc<Run>, number: usize) -> Arc<Self> {
        let api = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let effects = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut command = command(run, number);
        command.env(
            "AWS_LAMBDA_RUNTIME_API",
            api.local_addr().unwrap().to_string(),
        );
        command.env("EFFECTS", effects.local_addr().unwrap().to_string());
        let (sender, events) = mpsc::unbounded_channel();
        let instance = Arc::new(Self {
            number,
            run: Arc::clone(run),
            child: tokio::sync::Mutex::new(None),
            events: sender,
            attempt: Mutex::new(None),
            client: Mutex::new(None),
            is_started: Notify::new(),
            was_frozen: AtomicBool::new(false),
            servers: Mutex::default(),
        });
        let events = Arc::new(tokio::sync::Mutex::new(events));
        {
            let mut servers = instance.servers.lock().unwrap();
            servers.spawn(serve_api(Arc::clone(&instance), api, events));
            servers.spawn(serve_effects(Arc::clone(&instance), effects));
        }
        *instance.child.lock().await = Some(command.spawn().unwrap());
        let started = tokio::time::timeout(START_LIMIT, instance.is_started.notified());
        started.await.expect("the function starts");
        instance
    }

    /// Sends an event, and waits for the response, at most until the deadline of the invocation.
    /// Returns `None` if the process died.
    pub(crate) async fn invoke(&self, attempt: Attempt, item: u32) -> Option<Answer> {
        let (client, answer) = oneshot::channel();
        let invocation = Invocation {
            attempt,
            item,
            client,
        };
        self.events.send(invocation).ok()?;
        let answer = tokio::time::timeout(self.run.plan.limit, answer).await;
        if answer.is_err() && !self.was_frozen.load(Ordering::Relaxed) {
            self.kill(Kill::Deadline).await;
        }
        answer.ok()?.ok()
    }

    /// Kills the process, and waits until it is dead.
    pub(crate) async fn kill(&self, reason: Kill) {
        let Some(mut child) = self.child.lock().await.take() else {
            return;
        };
        // It ended by itself, which no run permits.
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            self.run.log(What::Exited(self.number));
        }
        let attempt = *self.attempt.lock().unwrap();
        child.start_kill().unwrap();
        self.run.log(What::Killed(self.number, attempt, reason));
        let _ = child.wait().await;
        drop(self.client.lock().unwrap().take());
    }

    /// True until the process was killed or frozen.
    pub(crate) async fn is_alive(&self) -> bool {
        self.child.lock().await.is_some() && !self.was_frozen.load(Ordering::Relaxed)
    }

    /// Stops the process from running until another attempt has claimed the call. The platform then
    /// kills it, late.
    async fn freeze(self: &Arc<Self>, attempt: Attempt, delay: Duration) {
        if !self.signal("STOP").await {
            return;
        }
        self.was_frozen.store(true, Ordering::Relaxed);
        self.run.log(What::Frozen(self.number, attempt));
        let instance = Arc::clone(self);
        tokio::spawn(async move {
            let run = Arc::clone(&instance.run);
            let rest = async {
                run.overtaken(attempt, delay).await;
                run.log(What::Thawed(instance.number, attempt));
                instance.signal("CONT").await;
                tokio::time::sleep(LAST_WORK).await;
                instance.kill(Kill::Deadline).await;
            };
            run.awaited(rest).await;
        });
    }

    /// Sends the process a signal. Returns false if it was killed.
    async fn signal(&self, name: &str) -> bool {
        let child = self.child.lock().await;
        let Some(id) = child.as_ref().and_then(Child::id) else {
            return false;
        };
        let mut command = Command::new("kill");
        let status = command.arg(format!("-{name}")).arg(id.to_string());
        status.status().await.unwrap().success()
    }

    /// Stops the process at the end of a run.
    pub(crate) async fn end(&self) {
        if let Some(mut child) = self.child.lock().await.take() {
            if child.try_wait().is_ok_and(|status| status.is_some()) {
                self.run.log(What::Exited(self.number));
            }
            let _ = child.kill().await;
        }
        // They refer to this instance.
        self.servers.lock().unwrap().abort_all();
    }

    pub(crate) fn attempt(&self) -> Option<Attempt> {
        *self.attempt.lock().unwrap()
    }

    /// Kills or freezes the process if its plan says so for this step of an attempt. Returns true
    /// if it is dead.
    pub(crate) async fn reach(self: &Arc<Self>, attempt: Attempt, step: Step) -> bool {
        if let Some(freeze) = self.run.freeze_at(attempt, step) {
            self.freeze(attempt, freeze.delay).await;
        }
        let Some(death) = self.run.death_at(attempt, step) else {
            return false;
        };
        if death.delay.is_zero() {
            self.kill(Kill::Step(step)).await;
            return true;
        }
        let instance = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(death.delay).await;
            instance.kill(Kill::Step(step)).await;
        });
        false
    }
}

fn command(run: &Run, number: usize) -> Command {
    let program = isolated(std::process::Command::new(&run.function));
    let mut command = Command::from(program);
    command
        .envs(LAMBDA)
        .envs(RUNTIME)
        .env("AWS_REGION", "us-east-1")
        // Identifies the process to the store.
        .env("AWS_ACCESS_KEY_ID", number.to_string())
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_ENDPOINT_URL_DYNAMODB", run.store_url())
        .env("TOOLS_AUTH", "none")
        .env("TOOLS_IDEMPOTENCY", "dynamodb")
        .env("TOOLS_IDEMPOTENCY_TABLE", crate::run::TABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}
