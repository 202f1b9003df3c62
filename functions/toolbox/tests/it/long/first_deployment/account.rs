//! An account of AWS, as far as a first deployment needs one.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use serde_json::json;
use test_support::{
    Served,
    aws::{CREDENTIALS, Emulator},
    function_url::FunctionUrl,
    invocations::Function,
};

use super::doors::{self, Stack, http_api};
use crate::support::{Running, faults, installed, isolated, repository, toolbox};
use events::Stub;

/// The account: its stacks, and the APIs that the AWS CLI reaches.
pub(crate) struct Account {
    emulator: Emulator,
    twilio: Stub,
    toolbox: Stack,
    tasks: Stack,
    streaming: Option<FunctionUrl>,
    gateway: Option<Running>,
    parameters: BTreeMap<String, BTreeMap<String, String>>,
    api: Served,
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
    pub(crate) async fn start() -> Self {
        let emulator = Emulator::start().await;
        let toolbox = http_api(Duration::from_secs(20)).await;
        let api = doors::aws(emulator.url(), &toolbox.deployments).await;
        Self {
            emulator,
            twilio: Stub::start().await,
            toolbox,
            tasks: http_api(Duration::from_secs(3)).await,
            streaming: None,
            gateway: None,
            parameters: BTreeMap::new(),
            api,
        }
    }

    /// Returns the variables with which the AWS CLI reaches this account.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let credentials = CREDENTIALS.map(|(name, value)| (name, value.to_owned()));
        let mut variables = credentials.to_vec();
        variables.push(("AWS_ENDPOINT_URL", self.api.url.clone()));
        variables
    }

    /// Plays a command that deploys the clone in this folder.
    pub(crate) async fn deploy(&mut self, command: &str, clone: &Path) {
        let words: Vec<_> = command.split(' ').collect();
        let stack = after(&words, "--stack-name")[0].trim_matches('"');
        let stack = stack.replace("$STACK", "tools");
        // An update keeps the values that are not given.
        let known = self.parameters.entry(stack.clone()).or_default();
        known.extend(after(&words, "--parameter-overrides").iter().map(|word| {
            let (name, value) = word.split_once('=').unwrap();
            (name.to_owned(), value.replace("\"$CLIENT_ID\"", "toolbox"))
        }));
        let is_url = known.get("Access").is_some_and(|it| it == "function-url");
        let list = known.get("ToolSchema").cloned();
        let values = known.iter().map(|(name, value)| format!("{name}={value}"));
        let values: Vec<_> = values.collect();
        let is_for_tasks = stack.ends_with("-tasks");
        let template = match &list {
            Some(_) => "gateway.yaml",
            None if is_for_tasks => "tasks.yaml",
            None => "template.yaml",
        };
        let template = clone.join(template).display().to_string();
        let words = |command: &str, urls: &[String]| {
            let first = [command.to_owned(), template.clone(), stack.clone()];
            [&first[..], urls, &values].concat()
        };
        if let Some(list) = list {
            let urls = [String::new(), self.start_gateway(&list)];
            self.play(&words("stack", &urls), "").await;
            return;
        }
        let variables = self.play(&words("deploy", &[]), "").await;
        let variables = serde_json::from_str(&variables).unwrap();
        let url = self.start_function(&variables, is_for_tasks, is_url).await;
        self.play(&words("stack", &[url, String::new()]), "").await;
        self.play(&["log".to_owned(), stack.clone()], &cold_start())
            .await;
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
            let url = streaming.url.clone();
            self.streaming = Some(streaming);
            return url;
        }
        let (stack, program) = if is_for_tasks {
            (&self.tasks, faults as fn() -> Command)
        } else {
            (&self.toolbox, toolbox as fn() -> Command)
        };
        stack
            .deployments
            .push(Function::start(program, &environment).await);
        stack.http_api.url.clone()
    }

    /// Starts a gateway that has the toolbox as a target with this list of tools; returns its URL.
    fn start_gateway(&mut self, list: &str) -> String {
        let function = "arn:aws:lambda:us-east-1:123456789012:function:toolbox";
        let mut command = isolated(Command::new(repository("target/venv-aws/bin/python")));
        command
            .arg(repository("tests/agentcore/played_gateway.py"))
            .args(["toolbox", function, list]);
        command
            .envs(CREDENTIALS)
            .env("AWS_ENDPOINT_URL", &self.api.url);
        let gateway = Running::start(&mut command);
        let url = tokio::task::block_in_place(|| gateway.line_with("http://", 60));
        self.gateway = Some(gateway);
        url
    }

    /// Takes what the toolbox has printed into its log.
    pub(crate) async fn take_logs(&self) {
        let lines = self.toolbox.deployments.lines();
        if !lines.is_empty() {
            self.play(&["log", "tools"].map(str::to_owned), &lines.join("\n"))
                .await;
        }
    }

    /// Runs the script that plays with the emulator; returns its output.
    pub(crate) async fn play(&self, words: &[String], input: &str) -> String {
        let mut command = Command::new(installed("python"));
        command
            .arg(repository("functions/toolbox/tests/deployment.py"))
            .args(words);
        command
            .envs(CREDENTIALS)
            .env("AWS_ENDPOINT_URL", self.emulator.url());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let input = input.to_owned();
        let output = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            std::io::Write::write_all(&mut stdin, input.as_bytes()).unwrap();
            drop(stdin);
            child.wait_with_output().unwrap()
        });
        crate::clients::stdout_of(&output.await.unwrap())
    }

    /// Waits if the minute is nearly over: quotas count from its start.
    pub(crate) async fn wait_for_a_minute_that_is_long_enough(&self) {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        let left = 60 - now.as_secs() % 60;
        if left < 10 {
            tokio::time::sleep(Duration::from_secs(left)).await;
        }
    }
}
