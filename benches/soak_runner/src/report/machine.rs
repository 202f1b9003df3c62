//! The circumstances of a run.

use std::{fs, io, process::Command};

/// The date, the machine and the commit.
pub(super) fn about() -> String {
    let output_of = |program: &str, arguments: &[&str]| -> io::Result<String> {
        let output = Command::new(program).args(arguments).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    let cpu = cpu
        .unwrap_or("unknown processor")
        .trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = output_of("uname", &["-sr"]).unwrap_or_default();
    let date = output_of("date", &["--utc", "+%Y-%m-%d %H:%M UTC"]).unwrap_or_default();
    let commit = output_of("git", &["describe", "--always", "--dirty", "--exclude=*"]);
    let commit = commit.unwrap_or_default();
    format!("{date}; {cpu}, {cores} cores; {kernel}; commit {commit}.")
}
