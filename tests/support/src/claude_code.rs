//! Claude Code, which comes from npm, with settings of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::repository;

/// Returns the program for this platform, which npm installs without running the package's scripts.
fn program() -> PathBuf {
    let packages = fs::read_dir(repository("target/conformance/node_modules/@anthropic-ai"));
    let packages = packages.expect("run tests/all, which installs Claude Code");
    let mut programs = packages.map(|package| package.unwrap().path().join("claude"));
    let program = programs.find(|program| program.is_file());
    let program = program.expect("Claude Code has no package for this platform");
    program.canonicalize().unwrap()
}

/// Sets the variables with which a shell finds Claude Code, and no others. Its settings are in `home`.
pub fn prepare(command: &mut Command, home: &Path) {
    command.env_clear();
    let path = std::env::var("PATH").unwrap();
    let folder = program().parent().unwrap().display().to_string();
    command.env("PATH", format!("{folder}:{path}"));
    command.env("HOME", home);
    command.env("CLAUDE_CODE_TMPDIR", home);
    command.env("DISABLE_TELEMETRY", "1");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    // Its own limit for connecting is short on a machine that also runs other tests.
    command.env("MCP_TIMEOUT", "30000");
    // Nothing listens there: a request to any other address fails.
    command.env("HTTP_PROXY", "http://127.0.0.1:9");
    command.env("HTTPS_PROXY", "http://127.0.0.1:9");
    command.env("NO_PROXY", "127.0.0.1,localhost");
}
