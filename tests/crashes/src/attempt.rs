//! One attempt of a call: an event for a process of the function, and what happens to the process.

use std::{
    process::{Command, Stdio},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use serde_json::json;
use test_support::{
    isolated,
    lambda::{Platform, calling},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    select,
    sync::{mpsc, oneshot},
};

use crate::{
    history::{Answer, Attempt},
    plan::{Behavior, Death, Policy, Step},
    run::{Run, TABLE},
};

/// The time for which a process that was frozen runs before the platform kills it: longer than it
/// takes to settle a claim.
const LAST_WORK: Duration = Duration::from_millis(400);

/// A process of the function: its attempt, or the last one, and where its death is demanded.
pub(crate) struct Process {
    attempt: usize,
    deaths: mpsc::UnboundedSender<(Death, oneshot::Sender<()>)>,
}

impl Run {
    /// Sends the call to an idle process, or to a new one, and waits for the response. `None` if the
    /// client gets none.
    pub(crate) async fn attempt(self: &Arc<Self>, item: u32) -> Option<Answer> {
        let (deaths, mut demanded) = mpsc::unbounded_channel();
        let (process, mut platform, attempt) = self.begin(item, deaths).await;
        let tool = match self.plan.policy {
            Policy::Recorded => "Order.Place",
            Policy::AtMostOnce => "Order.Once",
        };
        let body = json!({"tool_id": tool, "call_id": "the-call", "input": {"item": item}});
        let (event, limit) = (calling(&body, &[]), self.plan.limit);
        let delivered = platform.deliver(&event, limit).await;
        self.note(attempt, |it, _| {
            it.delivered = delivered - self.begun;
            it.deadline = it.delivered + limit;
        });
        let run = Arc::clone(self);
        tokio::spawn(async move { run.reach(process, attempt, Step::Delivered).await });
        let report = select! {
            report = platform.report_until(delivered + limit) => report,
            Some((death, done)) = demanded.recv() => {
                self.die(attempt, platform, death, done);
                tokio::time::sleep_until((delivered + limit).into()).await;
                return None;
            }
        };
        let Some((_, response, _)) = report else {
            self.end(platform);
            return None;
        };
        let answer = Answer::read(&response);
        self.note(attempt, |it, now| it.answer = Some((now, answer.clone())));
        for step in [Step::BeforeAnswer, Step::AfterAnswer] {
            if self.death_at(attempt, step).is_some() {
                self.note(attempt, |it, _| it.died = Some(step));
                self.end(platform);
                return (step == Step::AfterAnswer).then_some(answer);
            }
        }
        self.idle.lock().unwrap().push((process, platform));
        Some(answer)
    }

    /// Takes an idle process or starts one, and counts the attempt.
    async fn begin(
        self: &Arc<Self>,
        item: u32,
        deaths: mpsc::UnboundedSender<(Death, oneshot::Sender<()>)>,
    ) -> (usize, Platform, usize) {
        let idle = self.idle.lock().unwrap().pop();
        let attempt = {
            let attempts = &mut self.history.lock().unwrap().attempts;
            attempts.push(Attempt {
                item,
                ..Attempt::default()
            });
            attempts.len() - 1
        };
        let state = Process { attempt, deaths };
        if let Some((number, platform)) = idle {
            self.processes.lock().unwrap()[number] = state;
            return (number, platform, attempt);
        }
        let number = {
            let mut processes = self.processes.lock().unwrap();
            processes.push(state);
            processes.len() - 1
        };
        (number, self.start(number).await, attempt)
    }

    async fn start(&self, number: usize) -> Platform {
        let mut command = isolated(Command::new(&self.function));
        let (key, effects) = (number.to_string(), self.effects_at.to_string());
        let store = self.store.url();
        let environment = [
            ("AWS_REGION", "us-east-1"),
            // Identifies the process to the servers.
            ("AWS_ACCESS_KEY_ID", &*key),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_ENDPOINT_URL_DYNAMODB", &*store),
            ("EFFECTS", &*effects),
            ("TOOLS_IDEMPOTENCY", "dynamodb"),
            ("TOOLS_IDEMPOTENCY_TABLE", TABLE),
        ];
        Platform::start(command.stderr(Stdio::null()), &[], &environment).await
    }

    /// Kills or freezes the process of an attempt. A frozen one continues later, and is then killed.
    fn die(
        self: &Arc<Self>,
        attempt: usize,
        mut platform: Platform,
        death: Death,
        done: oneshot::Sender<()>,
    ) {
        self.note(attempt, |it, _| it.died = Some(death.step));
        if let Some(time) = death.frozen {
            platform.function.signal("STOP");
            let run = Arc::clone(self);
            tokio::spawn(async move {
                let rest = async {
                    tokio::time::sleep(time).await;
                    platform.function.signal("CONT");
                    platform.report_until(Instant::now() + LAST_WORK).await;
                    run.end(platform);
                };
                run.late(rest).await;
            });
        } else {
            self.end(platform);
        }
        let _ = done.send(());
    }

    /// Returns the planned death at a step of an attempt, the first time that it is reached.
    fn death_at(&self, attempt: usize, step: Step) -> Option<Death> {
        let death = self.plan.attempt(attempt).death?;
        let history = self.history.lock().unwrap();
        let has_died = history.attempts[attempt].died.is_some();
        (death.step == step && !has_died).then_some(death)
    }

    /// Kills or freezes a process if its plan says so for this step of an attempt; nothing goes on
    /// meanwhile. Returns true if it is dead.
    pub(crate) async fn reach(&self, process: usize, attempt: usize, step: Step) -> bool {
        let Some(death) = self.death_at(attempt, step) else {
            return false;
        };
        let (done, is_done) = oneshot::channel();
        {
            let state = &self.processes.lock().unwrap()[process];
            if state.attempt != attempt || state.deaths.send((death, done)).is_err() {
                return false;
            }
        }
        is_done.await.is_ok() && death.frozen.is_none()
    }

    /// Returns the attempt of a process.
    pub(crate) fn attempt_of(&self, process: usize) -> Option<usize> {
        Some(self.processes.lock().unwrap().get(process)?.attempt)
    }
}

/// Serves the tools' effects.
pub(crate) async fn serve_effects(run: Arc<Run>, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let run = Arc::clone(&run);
        // Goes on when the function has died.
        tokio::spawn(async move { effect(&run, stream).await });
    }
}

/// Lets an effect happen, and tells the tool how to go on.
async fn effect(run: &Arc<Run>, stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    // Nothing, if the process died while it connected.
    let process = line.split(' ').next()?.parse().ok()?;
    let attempt = run.attempt_of(process)?;
    run.note(attempt, |it, now| it.ran = it.ran.or(Some(now)));
    let plan = run.plan.attempt(attempt);
    if run.reach(process, attempt, Step::InTool).await {
        tokio::time::sleep(plan.death?.in_flight?).await;
    }
    let serial = run.effects.fetch_add(1, Ordering::Relaxed);
    let (reply, has_effect) = match plan.behavior {
        Behavior::Value => (json!({"done": serial}), true),
        Behavior::Panic => (json!("panic"), true),
        Behavior::Hang => (json!("hang"), true),
        Behavior::Refuse => (json!("refused"), false),
        Behavior::Busy => (json!("busy"), false),
    };
    if has_effect {
        run.note(attempt, |it, _| it.effects.push(serial));
    }
    if run.reach(process, attempt, Step::AfterEffect).await {
        return None;
    }
    stream.write_all(format!("{reply}\n").as_bytes()).await.ok()
}
