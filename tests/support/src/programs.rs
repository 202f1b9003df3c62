//! Programs that others publish and tests run: Claude Code, Prism, and AWS's emulator of Lambda.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use axum::{Router, body::to_bytes, extract::Request};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    Running, Served, free_address,
    function_url::{event_of, response_of},
    in_python, isolated,
    lambda::LAMBDA,
    node, repository,
};

/// Returns the program for this platform, which npm installs without running the package's scripts.
fn claude_code() -> PathBuf {
    let packages = fs::read_dir(repository("target/conformance/node_modules/@anthropic-ai"));
    let packages = packages.expect("run tests/all, which installs Claude Code");
    let mut programs = packages.map(|package| package.unwrap().path().join("claude"));
    let program = programs.find(|program| program.is_file());
    let program = program.expect("Claude Code has no package for this platform");
    program.canonicalize().unwrap()
}

/// Sets the variables with which a shell finds Claude Code, and no others. Its settings are in `home`.
pub fn prepare_claude_code(command: &mut Command, home: &Path) {
    command.env_clear();
    let path = std::env::var("PATH").unwrap();
    let folder = claude_code().parent().unwrap().display().to_string();
    command.env("PATH", format!("{folder}:{path}"));
    command.env("HOME", home);
    command.env("CLAUDE_CODE_TMPDIR", home);
    command.env("DISABLE_TELEMETRY", "1");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    // Its own limit for connecting is short on a machine that also runs other tests.
    command.env("MCP_TIMEOUT", "30000");
    // Nothing listens there: a request to any other address fails.
    command.env("HTTP_PROXY", "http://127.0.0.1:9");
    command.env("HTTPS_PROXY", "http://127.0.0.1:9");
    command.env("NO_PROXY", "127.0.0.1,localhost");
}

/// Prism, a mock server of APIs, which checks requests against an OpenAPI document. It ends when it
/// is dropped.
pub struct Prism {
    /// Its URL.
    pub url: String,
    _running: Running,
}

impl Prism {
    /// Starts a server for one of the documents that tests/install brings.
    pub async fn start(document: &str) -> Self {
        let address = free_address();
        let script = "target/openapi-tools/node_modules/@stoplight/prism-cli/dist/index.js";
        let document = format!("target/openapi-documents/{document}.json");
        let mut command = Command::new(node());
        command
            .arg(repository(script))
            .args(["mock", "--host", "127.0.0.1", "--verboseLevel", "warn"])
            .args(["--port", &address.port().to_string()])
            .arg(repository(&document));
        Self {
            url: format!("http://{address}"),
            // It reads the document first.
            _running: Running::listening(&mut command, address, 180).await,
        }
    }
}

/// AWS's Runtime Interface Emulator, which comes with AWS SAM, and the program that it runs as Lambda
/// does; both are stopped when dropped. It handles one event after the other. What needs several
/// instances, responses in parts, deadlines or signals has [`crate::lambda`].
pub struct Rie {
    /// Where Lambda's API listens.
    pub url: String,
    running: Mutex<Running>,
}

impl Rie {
    /// Runs a program with these environment variables.
    pub async fn start(program: impl AsRef<OsStr>, environment: &[(&str, &str)]) -> Self {
        let (invoke, runtime) = (free_address(), free_address());
        let mut command = isolated(Command::new(emulator()));
        command
            .args(["--runtime-interface-emulator-address", &invoke.to_string()])
            .args(["--runtime-api-address", &runtime.to_string()])
            .arg(program)
            .envs(LAMBDA)
            .env("TOOLS_AUTH", "none")
            .envs(environment.iter().copied())
            .stderr(Stdio::null());
        let running = Running::listening(&mut command, invoke, 20).await;
        Self {
            url: format!("http://{invoke}"),
            running: Mutex::new(running),
        }
    }

    /// Runs a program behind a function URL, which is on a loopback address, and which it knows: the
    /// events name the host of a real one.
    pub async fn behind_url(program: impl AsRef<OsStr>, environment: &[(&str, &str)]) -> Served {
        let served = Served::start_with(async |url| {
            let environment = [environment, &[("TOOLS_PUBLIC_URL", url)]].concat();
            let function = Self::start(program, &environment).await;
            let function = Arc::new(tokio::sync::Mutex::new(function));
            Router::new().fallback(async move |request: Request| {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, usize::MAX).await.unwrap();
                let event = event_of(&parts, &body);
                response_of(&function.lock().await.invoke(&event).await)
            })
        });
        served.await
    }

    /// Invokes the function; returns its response, or the error that it reports.
    pub async fn invoke(&self, event: &Value) -> Value {
        self.invoke_with(event, b"{}").await
    }

    /// Invokes the function with a client context.
    pub async fn invoke_with(&self, event: &Value, client_context: &[u8]) -> Value {
        let path = "/2015-03-31/functions/function/invocations";
        let request = reqwest::Client::new()
            .post(format!("{}{path}", self.url))
            .header("x-amz-client-context", STANDARD.encode(client_context))
            .body(event.to_string());
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Stops the function; returns the lines that it and the emulator have printed.
    pub fn end(self) -> Vec<String> {
        self.running.into_inner().unwrap().end()
    }
}

/// Returns the emulator for this machine's processor, in the package of AWS SAM.
fn emulator() -> PathBuf {
    let processor = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        other => other,
    };
    in_python(&format!("samcli/local/rapid/aws-lambda-rie-{processor}"))
}
