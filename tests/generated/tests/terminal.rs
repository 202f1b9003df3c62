//! A terminal in which a test types the commands of a page as they are printed.

use std::{
    fs,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use test_support::{
    Running,
    documents::{ADDRESS, Block, DEPLOYED, blocks, is_expected, matches},
    installed, isolated,
    programs::prepare_claude_code,
    repository,
};

/// The folder in which a user types, and the program that they left running in another terminal.
pub(crate) struct Terminal {
    home: PathBuf,
    folder: PathBuf,
    previous_folder: PathBuf,
    variables: Vec<(String, String)>,
    /// What is typed in place of texts of a page.
    replaced: Vec<(String, String)>,
    server: Option<Server>,
}

/// A program that runs until it is interrupted, and its address.
struct Server {
    running: Running,
    url: String,
    port: String,
}

impl Drop for Server {
    /// Interrupts all of its processes, as a terminal does.
    fn drop(&mut self) {
        let group = format!("-{}", self.running.child.id());
        let _ = Command::new("kill").args(["-INT", "--", &group]).status();
        self.running.has_ended_within(10);
    }
}

impl Terminal {
    /// Opens a terminal in a folder, with cargo-lambda installed, and a GitHub CLI that has a token.
    pub(crate) fn open(folder: &Path, github: &str) -> Self {
        let home = folder.with_extension("home");
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join(".curlrc"), "fail\nsilent\nshow-error\n").unwrap();
        let installed = installed("cargo-lambda").canonicalize().unwrap();
        let path = [&home, installed.parent().unwrap()].map(|it| it.display().to_string());
        let path = format!("{}:{}", path.join(":"), std::env::var("PATH").unwrap());
        let target = repository("target").canonicalize().unwrap();
        let variables = vec![
            ("PATH", path),
            ("CURL_HOME", home.display().to_string()),
            // All projects share what they build.
            ("CARGO_TARGET_DIR", target.display().to_string()),
            ("CARGO_NET_OFFLINE", "true".into()),
            ("GITHUB_URL", github.into()),
            ("PORT", "0".into()),
        ];
        let variables = variables.into_iter();
        let terminal = Self {
            home,
            folder: folder.into(),
            previous_folder: folder.into(),
            variables: variables.map(|(name, it)| (name.to_owned(), it)).collect(),
            replaced: vec![],
            server: None,
        };
        terminal.add_program("gh", "#!/bin/sh\necho a-token\n");
        terminal
    }

    /// Installs a program, in place of any other with this name.
    pub(crate) fn add_program(&self, name: &str, text: &str) {
        let path = self.home.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Sets a variable of the user's environment.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.retain(|(it, _)| *it != name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Types a text in place of one of the page, such as the user's own id.
    pub(crate) fn replace(&mut self, text: &str, by: &str) {
        self.replaced.push((text.to_owned(), by.to_owned()));
    }

    /// Adds a folder of programs.
    pub(crate) fn add_to_path(&mut self, folder: &Path) {
        let path = self.variables.iter().find(|(name, _)| *name == "PATH");
        let path = format!("{}:{}", folder.display(), path.unwrap().1);
        self.set("PATH", &path);
    }

    /// Returns the address of the server that was left running.
    pub(crate) fn url(&self) -> &str {
        &self.server.as_ref().unwrap().url
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Types the commands of a page, except those that the page says are not tested, and
    /// compares the answers with those on the page. Returns the commands, each with what it
    /// printed.
    pub(crate) fn type_page(&mut self, path: &str, text: &str) -> Vec<(String, String)> {
        self.type_blocks(&blocks(path, text))
    }

    /// Does the same for a part of a page. A block of Rust whose first line names a file becomes
    /// this file.
    pub(crate) fn type_blocks(&mut self, blocks: &[Block]) -> Vec<(String, String)> {
        let mut typed = Vec::new();
        let mut blocks = blocks.iter().peekable();
        while let Some(block) = blocks.next() {
            let file = block
                .text
                .lines()
                .next()
                .unwrap_or_default()
                .strip_prefix("// src/");
            if let Some(file) = file.filter(|_| block.language.starts_with("rust")) {
                fs::write(self.folder.join("src").join(file), &block.text).unwrap();
            }
            if block.language != "console" || block.mark.is_some() {
                continue;
            }
            let first = typed.len();
            let expected = blocks
                .next_if(|next| next.mark.is_none() && ["json", "text"].contains(&&*next.language));
            let mut command = String::new();
            let mut lines = block.text.lines().peekable();
            while let Some(line) = lines.next() {
                command += line;
                // A quoted text may have several lines.
                if command.matches('\'').count() % 2 == 1 {
                    command += "\n";
                    continue;
                }
                // The response that a page shows may be a rejection.
                let is_shown = lines.peek().is_none() && expected.is_some();
                let answer = if is_shown {
                    self.type_line(&command.replacen("curl ", "curl --no-fail ", 1))
                } else {
                    self.type_line(&command)
                };
                typed.push((std::mem::take(&mut command), answer));
            }
            if let Some(expected) = expected {
                compare(expected, &typed[first..]);
            }
        }
        typed
    }

    /// Types a command. Returns what it prints, unless it runs until it is interrupted.
    pub(crate) fn type_line(&mut self, line: &str) -> String {
        let mut line = line.to_owned();
        for (text, by) in &self.replaced {
            line = line.replace(text, by);
        }
        let serving = ["cargo run", "cargo lambda watch", "lambda-tools serve"];
        if serving.iter().any(|it| line.contains(it)) {
            self.serve(&line);
            return String::new();
        }
        // The toolbox's tests of Claude Code run it.
        if line.starts_with("claude ") && line.contains(DEPLOYED) {
            return String::new();
        }
        let server = self.server.as_ref();
        // The server prints the same command. Another test runs it.
        if line.starts_with("claude ") && line.contains(ADDRESS) {
            let line = line.replace(ADDRESS, &server.unwrap().url);
            let printed = server.unwrap().running.line_with("claude mcp add", 5);
            assert_eq!(printed.trim(), line);
            return line;
        }
        let url = server.map_or(ADDRESS, |server| &server.url);
        let mut line = line.replace(ADDRESS, url);
        if line.contains("cargo lambda invoke") {
            line = format!("{line} -P {}", server.unwrap().port);
        }
        self.run(&line)
    }

    /// Runs a line that sets a variable, or a command, to its end.
    fn run(&mut self, line: &str) -> String {
        let Some((name, _)) = line.split_once("=$(") else {
            return self.run_command(line);
        };
        if !name.chars().all(|it| it.is_ascii_uppercase()) {
            return self.run_command(line);
        }
        let value = self.run_command(&format!("{line}\necho \"${name}\""));
        self.set(name, &value);
        String::new()
    }

    /// Runs a command to its end, in the folder where the previous one has ended.
    fn run_command(&mut self, line: &str) -> String {
        let mut shell = self.shell(&format!("{line}\necho\npwd\necho \"$OLDPWD\""));
        let output = shell.output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}\n{stdout}\n{stderr}");
        let mut lines: Vec<_> = stdout.lines().collect();
        self.previous_folder = lines.pop().unwrap().into();
        self.folder = lines.pop().unwrap().into();
        self.lock();
        lines.join("\n").trim().to_owned()
    }

    /// Gives a new project the versions that are tested, which are also already downloaded.
    fn lock(&self) {
        let lock = self.folder.join("Cargo.lock");
        if self.folder.join("Cargo.toml").exists() && !lock.exists() {
            fs::copy(repository("Cargo.lock"), lock).unwrap();
        }
    }

    /// Starts a server or the emulator, in place of the previous one. Others than this machine cannot
    /// reach it.
    fn serve(&mut self, line: &str) {
        self.server = None;
        let port = free_port();
        let (line, ready) = if line.contains("watch") {
            (format!("{line} -P {port}"), "starting Runtime server")
        } else {
            (line.to_owned(), "Serving tools on")
        };
        let running = Running::start(self.shell(&line).process_group(0));
        let ready = running.line_with(ready, 600);
        assert!(ready.contains("127.0.0.1:"), "{line}\n{ready}");
        let url = ready.rsplit(' ').next().unwrap().to_owned();
        self.server = Some(Server { running, url, port });
    }

    fn shell(&self, script: &str) -> Command {
        let mut shell = isolated(Command::new("sh"));
        shell.args(["-ec", script]).current_dir(&self.folder);
        let mut variables = self.variables.clone();
        if script.starts_with("claude ") {
            prepare_claude_code(&mut shell, &self.home);
            variables.retain(|(name, _)| name != "PATH");
        }
        shell.envs(variables);
        shell.env("PWD", &self.folder);
        shell.env("OLDPWD", &self.previous_folder);
        shell
    }
}

/// Compares what commands of a block have printed with what the page says: JSON with what the last one
/// printed.
fn compare(expected: &Block, typed: &[(String, String)]) {
    let (_, last) = typed.last().unwrap();
    let is_same = if expected.language == "json" {
        let expected: Value = serde_json::from_str(&expected.text).unwrap();
        matches(&expected, &serde_json::from_str(last).unwrap())
    } else {
        let answers: Vec<_> = typed.iter().map(|(_, answer)| &**answer).collect();
        is_expected(&expected.text, &answers.join("\n"))
    };
    assert!(is_same, "{}: {typed:#?}", expected.place);
}

fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}
