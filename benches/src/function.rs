//! A function's process, and the resources the kernel reports for it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    cpu_group::{CpuGroup, Hierarchy, Share},
    runtime_api::{Event, Reply, RuntimeApi},
};

/// The command that starts a function.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
}

/// A running function.
pub(crate) struct Function {
    child: Child,
    api: RuntimeApi,
    /// The time from the start of the process to its first request for an event.
    pub(crate) cold_start: Duration,
    /// Dropped, and thus removed, after the process has ended.
    group: Option<CpuGroup>,
}

impl Function {
    /// Starts a function that has all of the processor.
    pub(crate) fn start(start: &Start) -> io::Result<Self> {
        Self::start_in(None, 256, start)
    }

    /// Starts a function that has this share of a processor from its first request for an event.
    pub(crate) fn start_limited(
        start: &Start,
        hierarchy: &Hierarchy,
        share: Share,
    ) -> io::Result<Self> {
        let group = CpuGroup::enter(hierarchy, share)?;
        Self::start_in(Some(group), share.megabytes, start)
    }

    fn start_in(group: Option<CpuGroup>, megabytes: u32, start: &Start) -> io::Result<Self> {
        let api = RuntimeApi::start()?;
        let mut command = Command::new(&start.program);
        command
            .args(&start.arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("AWS_LAMBDA_RUNTIME_API", api.address.to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "function")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", megabytes.to_string())
            .env("AWS_REGION", "us-east-1")
            .env("TOOLS_AUTH", "none")
            .env("RUST_BACKTRACE", "0")
            .envs(start.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let begun = Instant::now();
        let child = command.spawn()?;
        let mut function = Self {
            child,
            api,
            cold_start: Duration::ZERO,
            group,
        };
        function.cold_start = function.api.first_request() - begun;
        // No event is sent before `run`.
        if let Some(group) = &mut function.group {
            group.limit()?;
        }
        Ok(function)
    }

    /// The share of the periods in which the process used up its quota; none without a quota.
    pub(crate) fn throttled(&self) -> io::Result<f64> {
        self.group.as_ref().map_or(Ok(0.0), CpuGroup::throttled)
    }

    /// Sends events to the function; see [`RuntimeApi::run`].
    pub(crate) fn run(&self, events: &[Event]) -> (Vec<Reply>, Duration) {
        self.api.run(events)
    }

    /// The processor time used so far, by all threads.
    pub(crate) fn cpu(&self) -> io::Result<Duration> {
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = text.split_whitespace().next().unwrap_or_default();
            nanoseconds += first.parse::<u64>().map_err(io::Error::other)?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// The peak resident memory, in bytes.
    pub(crate) fn peak_memory(&self) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let line = line.unwrap_or_default().trim().trim_end_matches(" kB");
        Ok(line.parse::<u64>().map_err(io::Error::other)? * 1024)
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sizes in bytes of a file and of a zip that contains only that file.
pub(crate) fn sizes(file: &Path) -> io::Result<(u64, u64)> {
    let zip = std::env::temp_dir().join(format!("bench-{}.zip", std::process::id()));
    let script = "import sys, zipfile\n\
                  with zipfile.ZipFile(sys.argv[2], 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as z:\n\
                  \x20   z.write(sys.argv[1], 'bootstrap')";
    let status = Command::new("python3")
        .args(["-c", script])
        .arg(file)
        .arg(&zip)
        .status()?;
    if !status.success() {
        return Err(io::Error::other("python3 could not write the zip"));
    }
    let sizes = (fs::metadata(file)?.len(), fs::metadata(&zip)?.len());
    fs::remove_file(zip)?;
    Ok(sizes)
}
