//! A function's process, and the resources the kernel reports for it.

use std::{
    fs, io,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::runtime_api::{Event, Reply, RuntimeApi};

/// A running function.
pub(crate) struct Function {
    child: Child,
    api: RuntimeApi,
    /// The time from the start of the process to its first request for an event.
    pub(crate) cold_start: Duration,
}

impl Function {
    pub(crate) fn start(program: &Path) -> io::Result<Self> {
        let api = RuntimeApi::start()?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", api.address.to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "function")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
            .env("AWS_REGION", "us-east-1")
            .env("TOOLS_AUTH", "none")
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let begun = Instant::now();
        let child = command.spawn()?;
        let mut function = Self {
            child,
            api,
            cold_start: Duration::ZERO,
        };
        function.cold_start = function.api.first_request() - begun;
        Ok(function)
    }

    /// Sends events to the function; see [`RuntimeApi::run`].
    pub(crate) fn run(&self, events: &[Event]) -> (Vec<Reply>, Duration) {
        self.api.run(events)
    }

    /// Returns the processor time used so far, by all threads.
    pub(crate) fn cpu(&self) -> io::Result<Duration> {
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = text.split_whitespace().next().unwrap_or_default();
            nanoseconds += first.parse::<u64>().map_err(io::Error::other)?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Returns the peak resident memory, in megabytes.
    pub(crate) fn peak_memory(&self) -> io::Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.unwrap_or_default().trim().trim_end_matches(" kB");
        Ok(kilobytes.parse::<f64>().map_err(io::Error::other)? * 1024.0 / 1e6)
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the sizes in megabytes of a file and of a deflated zip that contains only that file, as
/// `bootstrap`.
pub(crate) fn sizes(file: &Path) -> io::Result<(f64, f64)> {
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
    #[expect(clippy::cast_precision_loss, reason = "sizes of files")]
    let size = |file: &Path| Ok::<_, io::Error>(fs::metadata(file)?.len() as f64 / 1e6);
    let sizes = (size(file)?, size(&zip)?);
    fs::remove_file(zip)?;
    Ok(sizes)
}
