//! A function under the tests' runtime API, its resources, and its log.

use std::{
    fs, io,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use serde_json::Value;
use test_support::{
    isolated,
    lambda::{LONG, Platform},
};

use crate::{growth::Resources, tally::Tally};

/// Begins every secret, and nothing else that is sent.
pub(crate) const MARK: &str = "marked-";
/// The number of looks at a process that is not asleep yet, two milliseconds apart.
const MAX_LOOKS: u32 = 50;

/// The answer to an event.
#[derive(Default)]
pub(crate) struct Answer {
    /// 200 for a call that is the event itself.
    pub(crate) status: u64,
    pub(crate) headers: Value,
    pub(crate) text: String,
    /// The number of requests that the store has failed meanwhile.
    pub(crate) store_failures: u64,
}

impl Answer {
    fn of((is_error, report, _): (bool, Value, bool), store_failures: u64) -> Self {
        let status = report["statusCode"].as_u64();
        let body = report["body"].as_str().filter(|_| status.is_some());
        Self {
            status: status.unwrap_or(if is_error { 0 } else { 200 }),
            text: body.map_or_else(|| report.to_string(), str::to_owned),
            headers: report["headers"].clone(),
            store_failures,
        }
    }

    /// Returns true if it is the documented error for a store that does not respond, and the store
    /// has failed.
    pub(crate) fn is_store_error(&self) -> bool {
        let is_unavailable = self.text.contains("is temporarily unavailable") || self.status == 503;
        self.store_failures > 0 && is_unavailable
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.headers["idempotent-replay"] == "true"
    }
}

/// A running function.
pub(crate) struct Function {
    platform: Platform,
    /// Counts the requests that the store has failed.
    store_failures: Arc<AtomicU64>,
    pub(crate) tally: Tally,
    /// The number of lines of its log.
    pub(crate) lines: usize,
    /// The number of lines with a secret.
    pub(crate) revealing: usize,
}

impl Function {
    /// Starts a program with no other settings than these.
    pub(crate) async fn start(
        program: &Path,
        environment: &[(&str, &str)],
        store_failures: Arc<AtomicU64>,
    ) -> Self {
        // The log includes what is written to the standard error.
        let mut command = isolated(Command::new("sh"));
        command.args(["-c", "exec \"$0\" 2>&1"]).arg(program);
        Self {
            platform: Platform::start(&mut command, &[], environment).await,
            store_failures,
            tally: Tally::default(),
            lines: 0,
            revealing: 0,
        }
    }

    /// Sends an event; returns the answer if it is right. `check` says what is wrong with it.
    pub(crate) async fn ask(
        &mut self,
        kind: &'static str,
        event: Value,
        check: impl FnOnce(&Answer) -> Option<String>,
    ) -> Option<Answer> {
        let before = self.store_failures.load(SeqCst);
        self.platform.send_events(&[(event, LONG)]);
        let report = self.platform.reports(1).await.remove(0);
        let answer = Answer::of(report, self.store_failures.load(SeqCst) - before);
        self.read_log();
        let mistake = check(&answer);
        let is_right = self.tally.count(kind, &answer, mistake.as_deref());
        is_right.then_some(answer)
    }

    fn read_log(&mut self) {
        for line in self.platform.function.lines() {
            self.lines += 1;
            if line.contains(MARK) {
                self.revealing += 1;
                eprintln!("a line with a secret: {line}");
            }
        }
    }

    /// Measures the process between two events, once it has nothing left to do.
    pub(crate) async fn measure(&mut self) -> io::Result<Resources> {
        let id = self.platform.function.child.id();
        for _ in 0..MAX_LOOKS {
            tokio::time::sleep(Duration::from_millis(2)).await;
            if sleeps(id)? {
                break;
            }
        }
        resources(id)
    }
}

/// Returns true if no thread of the process runs or waits for a processor.
fn sleeps(id: u32) -> io::Result<bool> {
    let threads = fs::read_dir(format!("/proc/{id}/task"))?;
    // A thread may have ended since.
    let mut stats = threads
        .flatten()
        .map(|thread| fs::read_to_string(thread.path().join("stat")).unwrap_or_default());
    Ok(stats.all(|stat| !stat.contains(") R ")))
}

/// Returns the resources of the process with this id.
///
/// The kernel updates `VmRSS` and `RssAnon` in `/proc/PID/status` in batches of many pages, so this
/// reads the exact numbers from `smaps_rollup`.
fn resources(id: u32) -> io::Result<Resources> {
    let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup"))?;
    let entries = |folder: &str| -> io::Result<u64> {
        let entries = fs::read_dir(format!("/proc/{id}/{folder}"))?.count();
        u64::try_from(entries).map_err(io::Error::other)
    };
    let (resident, anonymous) = (field(&rollup, "Rss:")?, field(&rollup, "Anonymous:")?);
    Ok([resident, anonymous, entries("fd")?, entries("task")?])
}

/// Returns the number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> io::Result<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let value = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| io::Error::other(format!("no {name} in /proc")))
}
