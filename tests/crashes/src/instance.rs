//! A process of the function, under a runtime API and with a server of effects of its own.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use test_support::{
    isolated,
    lambda::{LAMBDA, RUNTIME, calling},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    sync::{Notify, mpsc, oneshot},
    task::JoinSet,
};

use crate::{
    history::{Answer, Attempt, Kill, What},
    plan::{Behavior, Step},
    run::Run,
};

/// The longest time that a process may take to start.
const START_LIMIT: Duration = Duration::from_secs(30);

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
    servers: Mutex<JoinSet<()>>,
}

/// An event for the process.
struct Invocation {
    attempt: Attempt,
    item: u32,
    client: oneshot::Sender<Answer>,
}

/// The events that the runtime API hands out.
type Events = Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Invocation>>>;

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
        if answer.is_err() {
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

    /// True until the process was killed.
    pub(crate) async fn is_alive(&self) -> bool {
        self.child.lock().await.is_some()
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

    /// Kills the process if its plan says so for this step of an attempt. Returns true if it is
    /// dead.
    pub(crate) async fn reach(self: &Arc<Self>, attempt: Attempt, step: Step) -> bool {
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

async fn serve_api(instance: Arc<Instance>, listener: TcpListener, events: Events) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let (instance, events) = (Arc::clone(&instance), Arc::clone(&events));
        let service =
            service_fn(move |request| respond(Arc::clone(&instance), Arc::clone(&events), request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connections.spawn(async { drop(connection.await) });
    }
}

/// The reason for closing a connection without a response.
type Closed = Box<dyn std::error::Error + Send + Sync>;

async fn respond(
    instance: Arc<Instance>,
    events: Events,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Closed> {
    if request.method() == Method::GET {
        return next(&instance, &events).await;
    }
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let id = path.rsplit('/').nth(1).unwrap_or_default();
    let attempt = id
        .parse::<Attempt>()
        .map_err(|_| format!("unexpected request: {path}"))?;
    // A task of its own goes on when the function has died.
    let task = tokio::spawn(async move { accept(&instance, attempt, &body).await });
    if task.await? {
        let response = Response::builder().status(StatusCode::ACCEPTED);
        Ok(response.body(Full::default())?)
    } else {
        Err("dropped by the plan".into())
    }
}

/// Hands out an event.
async fn next(instance: &Arc<Instance>, events: &Events) -> Result<Response<Full<Bytes>>, Closed> {
    instance.is_started.notify_one();
    let invocation = events
        .lock()
        .await
        .recv()
        .await
        .ok_or("the run has ended")?;
    let Invocation {
        attempt,
        item,
        client,
    } = invocation;
    let run = &instance.run;
    let deadline = SystemTime::now() + run.plan.limit;
    let deadline = deadline.duration_since(UNIX_EPOCH)?.as_millis();
    *instance.attempt.lock().unwrap() = Some(attempt);
    *instance.client.lock().unwrap() = Some(client);
    run.delivered(attempt, instance.number, item);
    let (dying, step) = (Arc::clone(instance), Step::Delivered);
    tokio::spawn(async move { dying.reach(attempt, step).await });
    let body = json!({
        "tool_id": run.plan.policy.tool(), "call_id": run.call_id(), "input": {"item": item},
    });
    let arn = "arn:aws:lambda:us-east-1:1:function:t";
    let response = Response::builder()
        .header("lambda-runtime-aws-request-id", attempt.to_string())
        .header("lambda-runtime-deadline-ms", deadline.to_string())
        .header("lambda-runtime-invoked-function-arn", arn)
        .header("content-type", "application/json");
    Ok(response.body(calling(&body, &[]).to_string().into())?)
}

/// Takes a response. Returns false if the platform drops it.
async fn accept(instance: &Arc<Instance>, attempt: Attempt, body: &[u8]) -> bool {
    let answer = Answer::read(body);
    let is_dead = instance.reach(attempt, Step::BeforeAnswer).await;
    instance.run.log(What::Answered {
        attempt,
        is_accepted: !is_dead,
        answer: answer.clone(),
    });
    if is_dead {
        return false;
    }
    if let Some(client) = instance.client.lock().unwrap().take() {
        let _ = client.send(answer);
    }
    let dying = Arc::clone(instance);
    tokio::spawn(async move { dying.reach(attempt, Step::AfterAnswer).await });
    true
}

async fn serve_effects(instance: Arc<Instance>, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let instance = Arc::clone(&instance);
        // Goes on when the function has died.
        tokio::spawn(async move { effect(&instance, stream).await });
    }
}

/// Lets an effect happen, and tells the tool how to go on.
async fn effect(instance: &Arc<Instance>, stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    // A process that died while it connected.
    let wanted: Value = serde_json::from_str(&line).ok()?;
    let run = &instance.run;
    let attempt = instance.attempt()?;
    assert_eq!(wanted["call_id"], run.call_id());
    let item = u32::try_from(wanted["item"].as_u64()?).ok()?;
    run.log(What::EffectReceived(attempt, item));
    if instance.reach(attempt, Step::InTool).await {
        tokio::time::sleep(run.in_flight(attempt)?).await;
    }
    let behavior = run.plan.attempt(attempt).behavior;
    let reply = match behavior {
        Behavior::Refuse => json!("refused"),
        Behavior::Busy => json!("busy"),
        Behavior::Value | Behavior::Panic | Behavior::Hang => {
            let serial = run.new_effect(attempt, item);
            match behavior {
                Behavior::Panic => json!("panic"),
                Behavior::Hang => json!("hang"),
                _ => json!({"done": serial}),
            }
        }
    };
    if instance.reach(attempt, Step::AfterEffect).await {
        return None;
    }
    stream.write_all(format!("{reply}\n").as_bytes()).await.ok()
}
