//! AWS's Runtime Interface Emulator, which runs a program as Lambda does. It comes with AWS SAM.
//!
//! It handles one event after the other. What needs several instances, responses in parts, deadlines
//! or signals has [`crate::lambda`].

use std::{
    ffi::OsStr,
    process::{Command, Stdio},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{Running, free_address, isolated, lambda::LAMBDA, repository};

/// The emulator and the program that it runs, both stopped when dropped.
pub struct Rie {
    /// Where Lambda's API listens.
    pub url: String,
    running: Running,
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
