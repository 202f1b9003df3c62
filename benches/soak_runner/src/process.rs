//! The function's process, its resources, and its log.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use test_support::isolated;

/// The resources that the kernel reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resources {
    /// The resident memory, in bytes: `VmRSS`.
    pub(crate) resident: u64,
    /// The part of it that is not the program's file: `RssAnon`.
    pub(crate) anonymous: u64,
    pub(crate) descriptors: u64,
    pub(crate) threads: u64,
    /// The processor time so far.
    pub(crate) cpu: Duration,
}

/// A running process. It is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    /// The number of lines of its log.
    lines: Arc<AtomicU64>,
    /// The number of lines with a secret.
    revealing: Arc<AtomicU64>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Starts a program with no other settings than these. A line of its log that contains `mark`
    /// reveals a secret.
    pub(crate) fn start(
        program: Command,
        environment: &[(&str, &str)],
        mark: &'static str,
    ) -> io::Result<Self> {
        let mut command = isolated(program);
        let mut child = command
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (lines, revealing) = (Arc::default(), Arc::default());
        let outputs: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|it| Box::new(it) as _),
            child.stderr.take().map(|it| Box::new(it) as _),
        ];
        for output in outputs.into_iter().flatten() {
            let (lines, revealing) = (Arc::clone(&lines), Arc::clone(&revealing));
            thread::spawn(move || read_log(output, mark, &lines, &revealing));
        }
        Ok(Self {
            child,
            lines,
            revealing,
        })
    }

    /// True if the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The numbers of lines, and of lines with a secret.
    pub(crate) fn lines(&self) -> (u64, u64) {
        (self.lines.load(Relaxed), self.revealing.load(Relaxed))
    }

    /// True if no thread runs or waits for a processor.
    pub(crate) fn sleeps(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.child.id())) else {
            return true;
        };
        // A thread may have ended since.
        let stat = |path: PathBuf| fs::read_to_string(path.join("stat")).unwrap_or_default();
        let mut states = threads.flatten().map(|thread| stat(thread.path()));
        states.all(|stat| !stat.contains(") R "))
    }

    pub(crate) fn resources(&self) -> io::Result<Resources> {
        Resources::of(self.child.id())
    }
}

fn read_log(output: impl Read, mark: &str, lines: &AtomicU64, revealing: &AtomicU64) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        lines.fetch_add(1, Relaxed);
        let line = String::from_utf8_lossy(&line);
        if line.contains(mark) && revealing.fetch_add(1, Relaxed) < 5 {
            eprintln!("a line with a secret: {line}");
        }
    }
}

impl Resources {
    /// The resources of the process with this id.
    ///
    /// The kernel updates `VmRSS` and `RssAnon` in `/proc/PID/status` in batches of many pages, so
    /// this reads the exact numbers from `smaps_rollup`.
    pub(crate) fn of(id: u32) -> io::Result<Self> {
        let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup"))?;
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let descriptors = fs::read_dir(format!("/proc/{id}/fd"))?.count();
        let descriptors = u64::try_from(descriptors).unwrap_or(u64::MAX);
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        Ok(Self {
            resident: field(&rollup, "Rss:")? * 1024,
            anonymous: field(&rollup, "Anonymous:")? * 1024,
            descriptors,
            threads: field(&status, "Threads:")?,
            cpu: cpu_in(&stat),
        })
    }
}

/// The processor time of all threads, also of those that have ended: the fields `utime` and `stime`,
/// in hundredths of a second.
fn cpu_in(stat: &str) -> Duration {
    // The name of the program, in parentheses, may contain spaces.
    let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
    let fields = fields.split_whitespace().skip(11).take(2);
    let ticks = fields
        .filter_map(|field| field.parse::<u64>().ok())
        .sum::<u64>();
    Duration::from_millis(ticks * 10)
}

/// The number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> io::Result<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let value = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| io::Error::other(format!("no {name} in /proc")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_those_of_the_process() {
        let before = Resources::of(std::process::id()).unwrap();
        let kept = vec![1_u8; 8 << 20];
        let file = fs::File::open("/proc/self/status").unwrap();
        let after = Resources::of(std::process::id()).unwrap();
        let grown = after.anonymous.saturating_sub(before.anonymous);
        assert!(grown >= 8 << 20, "{grown}");
        assert!(after.resident > after.anonymous);
        assert!(after.threads >= 1);
        drop((kept, file));
    }

    #[test]
    fn the_processor_time_is_that_of_the_user_and_of_the_kernel() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 101 0 2 0 150 25 0 0 20 0 3 0 44 9 8";
        assert_eq!(cpu_in(stat), Duration::from_millis(1750));
    }
}
