//! Paths, processes, and the servers that tests play, for the library's tests and the functions'.
//!
//! It stands apart from what it tests: it depends on no package of this repository, so that it turns
//! no feature on for them.

#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::new_without_default,
    reason = "tests fail by panicking"
)]

pub mod aws;
pub mod documents;
pub mod lambda;
pub mod marks;
pub mod openid;

use axum::{body::Body, response::Response};

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// A program that `tests/all` installs.
pub fn installed(program: &str) -> PathBuf {
    let path = repository("target/venv/bin").join(program);
    assert!(
        path.exists(),
        "{program} is not installed; run tests/all, which does it"
    );
    path
}

/// What `tests/all` builds as it is deployed.
pub fn built(path: &str) -> PathBuf {
    let path = repository("target").join(path);
    assert!(
        path.exists(),
        "{} is not there; run tests/all, which builds it",
        path.display()
    );
    path
}

/// A command without what could lead it elsewhere.
pub fn isolated(mut command: Command) -> Command {
    let leads_elsewhere = |name: &str| {
        ["AWS_", "TOOLS_", "TWILIO_", "GMAIL_", "OTEL_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || [
                "HOST",
                "PORT",
                "RECORD_EVENTS",
                "RUST_LOG",
                "ALLOWED_HOSTS",
                "LOG_CALLS",
            ]
            .contains(&name)
    };
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(leads_elsewhere) {
            command.env_remove(name);
        }
    }
    command
}

/// A test of this program, as a command: a function that runs as a process of its own.
pub fn function(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    // With one, which is the default on one processor, its first line begins with the test's name.
    command.arg("--test-threads=2");
    command.env("RUNS_AS_FUNCTION", "1");
    command
}

/// Whether a test is what [`function`] has started.
pub fn runs_as_function() -> bool {
    std::env::var_os("RUNS_AS_FUNCTION").is_some()
}

/// A process that is killed when the test ends, however it ends, and what it prints.
pub struct Running {
    /// The process.
    pub child: Child,
    lines: mpsc::Receiver<String>,
}

impl Running {
    /// Starts a process whose output is read.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let (send, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            // To its end, whether or not anybody reads: the process must be able to print.
            lines.for_each(|line| drop(send.send(line)));
        });
        Self { child, lines }
    }

    /// The next line that contains `text`; fails after `seconds`.
    pub fn line_with(&self, text: &str, seconds: u64) -> String {
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut seen = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => seen.push(line),
                Err(error) => panic!("no line with {text:?} ({error}) among\n{}", seen.join("\n")),
            }
        }
    }

    /// All lines that have been printed and not been looked at.
    pub fn lines(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Ends the process; all lines that it has printed and nobody has looked at.
    pub fn end(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        // To the end of the pipe: what was printed need not have been read yet.
        self.lines.iter().collect()
    }

    /// Starts a local server of tools on a free port; returns it and its URL.
    pub fn serving(command: &mut Command) -> (Self, String) {
        let running = Self::start(command.env("PORT", "0"));
        let line = running.line_with("Serving tools on", 20);
        let (_, url) = line.split_once("on ").unwrap();
        let url = url.to_owned();
        running.line_with("curl", 5);
        (running, url)
    }

    /// Whether the process ends by itself within `seconds`, and with which code.
    pub fn ends_within(&mut self, seconds: u64) -> Option<i32> {
        for _ in 0..=seconds * 50 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            if seconds == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Whether the process has ended, by itself or by a signal, within `seconds`.
    pub fn has_ended_within(&mut self, seconds: u64) -> bool {
        self.ends_within(seconds);
        self.child.try_wait().unwrap().is_some()
    }

    /// Asks the process to stop with a signal.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response of a server that a test plays.
pub fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}
