//! The machine and the versions.

use std::{fs, process::Command, time::SystemTime};

/// The date, machine and versions.
pub(super) fn about() -> String {
    let output_of = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        text.unwrap_or_else(|error| error.to_string())
    };
    let seconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let date = output_of("date", &format!("--date=@{}", seconds.as_secs()));
    let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model
        .unwrap_or("unknown processor")
        .trim_start_matches(['\t', ' ', ':'])
        .to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = output_of("uname", "-sr");
    // Without the comparison, it may not be installed.
    let python = std::env::var("BENCH_PYTHON").unwrap_or_default();
    let python = if fs::exists(&python).unwrap_or(false) {
        output_of(&python, "--version")
    } else {
        "no Python".into()
    };
    format!(
        "{date}; {model}, {cores} cores; {kernel}; {}; {}; {python}; {}. Release profile, fat LTO, \
         one codegen unit, optimized for size, stripped; `RUST_BACKTRACE=0`.",
        output_of("rustc", "--version"),
        locked_versions(&[
            "jsonschema",
            "lambda_http",
            "lambda_runtime",
            "lambda_tools",
            "rmcp",
            "tokio"
        ]),
        pinned_versions(),
    )
}

/// The versions of crates, from the lock file.
fn locked_versions(names: &[&str]) -> String {
    let lock = fs::read_to_string("Cargo.lock").unwrap_or_default();
    let version = |name: &&str| {
        let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(format!("{name} {}", rest.split('"').next()?))
    };
    names
        .iter()
        .filter_map(version)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The versions of the Python contestants.
fn pinned_versions() -> String {
    let file = fs::read_to_string("benches/python/requirements.txt").unwrap_or_default();
    let pins = file.lines().filter(|line| !line.starts_with('#'));
    pins.map(|pin| pin.replace("==", " "))
        .collect::<Vec<_>>()
        .join(", ")
}
