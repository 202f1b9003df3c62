//! An account of AWS, as far as the commands of a page need one.

use std::{
    collections::BTreeMap,
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use test_support::{
    Served, answer,
    aws::{CREDENTIALS, Emulator},
    fed,
    function_url::{End, Function, FunctionUrl, Limits},
};

use crate::{
    clients::stdout_of,
    support::{Running, faults, installed, isolated, repository, toolbox},
};
use events::Stub;

/// The domain of the HTTP APIs, as their events name it.
const DOMAIN: &str = "r3pmxmplak.execute-api.us-east-1.amazonaws.com";

/// The account: its stacks, and the APIs that the AWS CLI reaches.
pub(super) struct Account {
    emulator: Emulator,
    toolbox: Arc<Function>,
    twilio: Stub,
    tasks: Function,
    streaming: Option<FunctionUrl>,
    gateway: Option<Running>,
    parameters: BTreeMap<String, BTreeMap<String, String>>,
    cli: Served,
}

/// Returns the words after an option.
fn after<'a>(words: &'a [&'a str], option: &str) -> &'a [&'a str] {
    let position = words.iter().position(|word| *word == option);
    position.map_or(&[], |position| &words[position + 1..])
}

/// Returns a line like those with which Lambda reports a cold start.
fn cold_start() -> String {
    let metrics = json!({
        "durationMs": 3.1, "billedDurationMs": 53, "memorySizeMB": 256, "maxMemoryUsedMB": 30,
        "initDurationMs": 49.7,
    });
    let id = "8476a536-e9f4-11e8-9739-2dfe598c3fcd";
    let record = json!({"requestId": id, "metrics": metrics, "status": "success"});
    let time = "2026-11-25T12:00:00.000Z";
    json!({"time": time, "type": "platform.report", "record": record}).to_string()
}

impl Account {
    pub(super) async fn start() -> Self {
        let emulator = Emulator::start().await;
        let toolbox = Arc::new(Function::behind(toolbox, Some(DOMAIN)).await);
        let tasks = Function::behind(faults, Some(DOMAIN)).await;
        tasks.limit(Limits {
            source: Duration::from_secs(3),
            ..Limits::default()
        });
        let state = (emulator.url().to_owned(), Arc::clone(&toolbox));
        let router = Router::new().fallback(answer_cli).with_state(state);
        Self {
            emulator,
            toolbox,
            twilio: Stub::start().await,
            tasks,
            streaming: None,
            gateway: None,
            parameters: BTreeMap::new(),
            cli: Served::start(router).await,
        }
    }

    /// Returns the variables with which the AWS CLI reaches this account.
    pub(super) fn variables(&self) -> Vec<(&str, &str)> {
        let mut variables = CREDENTIALS.to_vec();
        variables.push(("AWS_ENDPOINT_URL", &self.cli.url));
        variables
    }

    /// Plays a command that deploys the clone in this folder.
    pub(super) async fn deploy(&mut self, command: &str, clone: &Path) {
        let words: Vec<_> = command.split(' ').collect();
        let stack = after(&words, "--stack-name")[0];
        // An update keeps the values that are not given.
        let known = self.parameters.entry(stack.to_owned()).or_default();
        known.extend(after(&words, "--parameter-overrides").iter().map(|word| {
            let (name, value) = word.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        }));
        let known = known.clone();
        let is_for_tasks = stack.ends_with("-tasks");
        let template = match known.get("ToolSchema") {
            Some(_) => "gateway.yaml",
            None if is_for_tasks => "tasks.yaml",
            None => "template.yaml",
        };
        let template = clone.join(template).display().to_string();
        let values: Vec<_> = known
            .iter()
            .map(|(name, it)| format!("{name}={it}"))
            .collect();
        let create = async |account: &Self, url: &str| {
            let values = values.iter().map(|it| &**it);
            let words = ["deploy", &template, stack, url].into_iter().chain(values);
            account.play(&words.collect::<Vec<_>>(), "")
        };
        if let Some(list) = known.get("ToolSchema") {
            let url = self.start_gateway(list);
            create(self, &url).await;
            return;
        }
        let variables = create(self, "").await;
        let variables = serde_json::from_str(&variables).unwrap();
        let is_url = known.get("Access").is_some_and(|it| it == "function-url");
        let url = self.start_function(&variables, is_for_tasks, is_url).await;
        create(self, &url).await;
        self.play(&["log", stack], &cold_start());
    }

    /// Starts a function with these variables; returns its URL.
    async fn start_function(
        &mut self,
        variables: &BTreeMap<String, String>,
        is_for_tasks: bool,
        is_url: bool,
    ) -> String {
        let twilio = self.twilio.url();
        let mut environment = CREDENTIALS.to_vec();
        environment.extend([
            ("AWS_ENDPOINT_URL", self.emulator.url()),
            ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
            ("TWILIO_URL", &twilio),
        ]);
        environment.extend(variables.iter().map(|(name, value)| (&**name, &**value)));
        if is_url {
            let streaming = FunctionUrl::start(&mut toolbox(), &environment).await;
            return self.streaming.insert(streaming).url.clone();
        }
        let function = if is_for_tasks {
            &self.tasks
        } else {
            &*self.toolbox
        };
        function.deploy(&environment).await;
        function.url.clone()
    }

    /// Starts a gateway that has the toolbox as a target with this list of tools; returns its URL.
    fn start_gateway(&mut self, list: &str) -> String {
        let function = "arn:aws:lambda:us-east-1:123456789012:function:toolbox";
        let mut command = isolated(Command::new(repository("target/venv-aws/bin/python")));
        command
            .arg(repository("tests/agentcore/played_gateway.py"))
            .args(["toolbox", function, list])
            .envs(self.variables());
        let gateway = Running::start(&mut command);
        let url = tokio::task::block_in_place(|| gateway.line_with("http://", 60));
        self.gateway = Some(gateway);
        url
    }

    /// Takes what the toolbox has printed into its log.
    pub(super) fn take_logs(&self) {
        let lines = self.toolbox.lines();
        if !lines.is_empty() {
            self.play(&["log", "tools"], &lines.join("\n"));
        }
    }

    /// Runs the script that plays with the emulator; returns its output.
    pub(super) fn play(&self, words: &[&str], input: &str) -> String {
        let mut command = Command::new(installed("python"));
        command
            .arg(repository("functions/toolbox/tests/deployment.py"))
            .args(words)
            .envs(CREDENTIALS)
            .env("AWS_ENDPOINT_URL", self.emulator.url());
        stdout_of(&tokio::task::block_in_place(|| fed(&mut command, input)))
    }

    /// Waits if the minute is nearly over: quotas count from its start.
    pub(super) async fn wait_for_a_minute_that_is_long_enough(&self) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let left = 60 - now.unwrap().as_secs() % 60;
        if left < 10 {
            tokio::time::sleep(Duration::from_secs(left)).await;
        }
    }
}

/// Answers the AWS CLI: invocations with the toolbox, and everything else with the emulator.
async fn answer_cli(
    State((emulator, toolbox)): State<(String, Arc<Function>)>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 6 << 20).await.unwrap();
    if parts.uri.path().ends_with("/invocations") {
        let context = parts.headers.get("x-amz-client-context");
        let context = context.map(|it| STANDARD.decode(it).unwrap());
        let context = context.map(|it| serde_json::from_slice(&it).unwrap());
        let event = serde_json::from_slice(&body).unwrap();
        return match toolbox.invoke(&event, context.as_ref()).await {
            End::Response(response) => {
                let headers = [("x-amz-executed-version", "$LATEST")];
                answer(200, &headers, response.to_string())
            }
            other => panic!("{other:?}"),
        };
    }
    let mut headers = parts.headers;
    headers.remove("host");
    let url = format!("{emulator}{}", parts.uri);
    let forwarded = reqwest::Client::new().request(parts.method, url);
    let received = forwarded.headers(headers).body(body).send().await.unwrap();
    let mut response = Response::builder().status(received.status());
    for name in ["content-type", "x-amzn-errortype", "x-amzn-requestid"] {
        if let Some(value) = received.headers().get(name) {
            response = response.header(name, value);
        }
    }
    let body = Body::from(received.bytes().await.unwrap());
    response.body(body).unwrap()
}
