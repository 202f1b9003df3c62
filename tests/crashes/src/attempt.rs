//! One attempt of a call: an event for a process of the function, and what happens to the process.

use std::{
    process::{Command, Stdio},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use test_support::{
    isolated,
    lambda::{Platform, calling},
    mcp::MODERN,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    select,
    sync::{mpsc, oneshot},
};

use crate::{
    history::{Answer, Attempt, Kind},
    plan::{Behavior, Death, Plan, Policy, Step},
    run::{Run, TABLE},
};

/// The `call_id` of all calls.
const CALL: &str = "the-call";

/// The time for which a process that was frozen runs before the platform kills it: longer than it
/// takes to settle a claim.
const LAST_WORK: Duration = Duration::from_millis(400);

/// What a process receives.
pub(crate) enum Event {
    /// A call that orders this item.
    Call(u32),
    /// The event of a task that orders this item.
    Work(u32, Value),
    /// A question about a task.
    Get(String),
    /// A request to cancel a task.
    Cancel(String),
}

impl Event {
    /// Returns an attempt to carry it out.
    fn attempt(&self) -> Attempt {
        let (kind, item, task) = match self {
            Self::Call(item) => (Kind::Call, *item, None),
            Self::Work(item, event) => {
                let task = event["lambda_tools"]["task"].as_str();
                (Kind::Work, *item, task.map(str::to_owned))
            }
            Self::Get(task) => (Kind::Get, 0, Some(task.clone())),
            Self::Cancel(task) => (Kind::Cancel, 0, Some(task.clone())),
        };
        Attempt {
            kind,
            item,
            task,
            ..Attempt::default()
        }
    }

    /// Returns the JSON that the platform delivers.
    fn encode(&self, plan: &Plan) -> Value {
        let is_once = plan.policy == Policy::AtMostOnce;
        match self {
            Self::Call(item) if plan.tasks.is_none() => {
                let tool = if is_once { "Order.Once" } else { "Order.Place" };
                let body = json!({"tool_id": tool, "call_id": CALL, "input": {"item": item}});
                calling(&body, &[])
            }
            Self::Call(item) => {
                let tool = if is_once {
                    "Order_LaterOnce"
                } else {
                    "Order_Later"
                };
                let meta = json!({"lambda-tools/call-id": CALL});
                let params = json!({"name": tool, "arguments": {"item": item}, "_meta": meta});
                asking("tools/call", tool, params)
            }
            Self::Work(_, event) => event.clone(),
            Self::Get(task) => asking("tasks/get", task, json!({"taskId": task})),
            Self::Cancel(task) => asking("tasks/cancel", task, json!({"taskId": task})),
        }
    }
}

/// Returns the event of a request of an MCP client that takes tasks.
fn asking(method: &str, name: &str, mut params: Value) -> Value {
    let extension = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = extension;
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let headers = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", method),
        ("mcp-name", name),
    ];
    let mut event = calling(&body, &headers);
    event["rawPath"] = "/mcp".into();
    event["requestContext"]["http"]["path"] = "/mcp".into();
    event
}

/// A process of the function: its attempt, or the last one, and where its death is demanded.
pub(crate) struct Process {
    attempt: usize,
    deaths: mpsc::UnboundedSender<(Death, oneshot::Sender<()>)>,
}

impl Run {
    /// Sends an event to an idle process, or to a new one, and waits for the response. `None` if the
    /// client gets none.
    pub(crate) async fn attempt(self: &Arc<Self>, event: Event) -> Option<Answer> {
        let (deaths, mut demanded) = mpsc::unbounded_channel();
        let (process, mut platform, attempt) = self.begin(event.attempt(), deaths).await;
        let (is_work, limit) = (matches!(event, Event::Work(..)), self.plan.limit);
        let event = event.encode(&self.plan);
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
        let Some((is_error, response, _)) = report else {
            self.end(platform);
            return None;
        };
        let answer = if is_work {
            Answer::of_work(is_error, &response)
        } else {
            Answer::read(&response)
        };
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
        mut new: Attempt,
        deaths: mpsc::UnboundedSender<(Death, oneshot::Sender<()>)>,
    ) -> (usize, Platform, usize) {
        let idle = self.idle.lock().unwrap().pop();
        let attempt = {
            let attempts = &mut self.history.lock().unwrap().attempts;
            if new.kind.is_planned() {
                let number = attempts.iter().filter(|it| it.kind.is_planned()).count();
                new.plan = self.plan.attempts.get(number).cloned().unwrap_or_default();
            }
            attempts.push(new);
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
        let (store, api) = (self.store.url(), format!("http://{}", self.platform_at));
        let environment = [
            ("AWS_REGION", "us-east-1"),
            // Identifies the process to the servers.
            ("AWS_ACCESS_KEY_ID", &*key),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_ENDPOINT_URL_DYNAMODB", &*store),
            ("AWS_ENDPOINT_URL_LAMBDA", &*api),
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
        let death = self.plan_of(attempt).death?;
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
    let plan = run.plan_of(attempt);
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
