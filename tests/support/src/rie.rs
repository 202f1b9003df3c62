//! AWS's Runtime Interface Emulator, which runs a program as Lambda does. It comes with AWS SAM.
//!
//! It handles one event after the other. What needs several instances, responses in parts, deadlines
//! or signals has [`crate::lambda`].

use std::{
    ffi::OsStr,
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{Running, isolated, lambda::LAMBDA, repository};

/// The emulator and the program that it runs, both stopped when dropped.
pub struct Rie {
    /// Where Lambda's API listens.
    pub url: String,
    running: Running,
}

impl Rie {
    /// Runs a program with these environment variables.
    pub async fn start(program: impl AsRef<OsStr>, environment: &[(&str, &str)]) -> Self {
        // Both are free until the emulator listens there.
        let probes = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [invoke, runtime] = probes.map(|probe| probe.local_addr().unwrap().to_string());
        let mut command = isolated(Command::new(emulator()));
        command
            .args(["--runtime-interface-emulator-address", &invoke])
            .args(["--runtime-api-address", &runtime])
            .arg(program)
            .envs(LAMBDA)
            .env("TOOLS_AUTH", "none")
            .envs(environment.iter().copied())
            .stderr(Stdio::null());
        let running = Running::start(&mut command);
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(&invoke).is_err() {
            assert!(Instant::now() < deadline, "the emulator does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let url = format!("http://{invoke}");
        Self { url, running }
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
        self.running.end()
    }
}

/// Returns the emulator for this machine's processor, in the package of AWS SAM.
fn emulator() -> std::path::PathBuf {
    let processor = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        other => other,
    };
    let file = format!("site-packages/samcli/local/rapid/aws-lambda-rie-{processor}");
    let lib = std::fs::read_dir(repository("target/venv/lib"));
    let mut pythons = lib.expect("run tests/all, which installs AWS SAM");
    let emulator =
        pythons.find_map(|it| Some(it.ok()?.path().join(&file)).filter(|it| it.exists()));
    emulator.expect("run tests/all, which installs AWS SAM")
}
