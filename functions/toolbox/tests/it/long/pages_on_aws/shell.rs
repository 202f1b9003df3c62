//! The shell in which an owner types the commands.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use test_support::{
    Served,
    claude_code::{ClaudeCode, played_model},
    node,
};

use crate::support::{installed, repository, toolbox};

/// The line that ends the output of a block.
const END: &str = "the end of the block:";

/// A running shell in a folder of its own.
pub(super) struct Shell {
    pub(super) folder: PathBuf,
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    _claude: ClaudeCode,
    _model: Served,
}

impl Shell {
    /// Starts a shell in a folder that is used like a clone of the repository. The model of Claude Code
    /// asks for this tool.
    pub(super) async fn start(variables: &[(&str, &str)], tool: &str) -> Self {
        let claude = ClaudeCode::new(tool);
        let folder = claude.home.0.join("clone");
        fs::create_dir_all(&folder).unwrap();
        fs::copy(repository("template.yaml"), folder.join("template.yaml")).unwrap();
        let input = serde_json::json!({"a": 10, "b": 5});
        let model = played_model(tool.to_owned(), input).await;
        let mut command = Command::new("bash");
        command
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        claude.prepare(&mut command);
        add_programs(&mut command, &claude.home.0.join("bin"));
        command
            .env("ANTHROPIC_BASE_URL", &model.url)
            .env("ANTHROPIC_API_KEY", "any");
        command.envs(variables.iter().copied());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"exec 2>&1\n").unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        Self {
            folder,
            child,
            input,
            lines,
            _claude: claude,
            _model: model,
        }
    }

    /// Runs commands; returns their output and the exit code of the last one.
    pub(super) fn run(&mut self, commands: &str) -> (String, i32) {
        fs::write(self.folder.join("block"), commands).unwrap();
        let script = format!(". ./block </dev/null; printf '\\n{END} %s\\n' $?\n");
        self.input.write_all(script.as_bytes()).unwrap();
        let mut output = String::new();
        loop {
            let line = self.lines.recv_timeout(Duration::from_mins(3));
            let line = line.unwrap_or_else(|error| panic!("{error}: {commands}\n{output}"));
            if let Some(code) = line.strip_prefix(END) {
                return (output, code.trim().parse().unwrap());
            }
            output += line.trim_end_matches('\r');
            output += "\n";
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets a command find the AWS CLI, AWS's client for MCP, SAM, and the programs that are written to
/// this folder.
fn add_programs(command: &mut Command, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for (name, script) in [
        ("npx", inspector()),
        ("cargo", cargo()),
        ("lambda-tools", lambda_tools()),
    ] {
        let path = folder.join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let aws = repository("target/venv-aws/bin");
    let is_installed = aws.join("aws").exists();
    assert!(is_installed, "the AWS CLI is not installed; run tests/all");
    let mut variables = command.get_envs();
    let path = variables.find_map(|(name, value)| value.filter(|_| name == "PATH"));
    let path = path.unwrap().to_owned();
    let sam = installed("sam");
    let folders = [folder, &aws, sam.parent().unwrap()].map(Path::to_owned);
    let folders = folders.into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).unwrap());
}

/// Returns where the lines of a process arrive.
fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    let output = BufReader::new(output).lines().map_while(Result::ok);
    std::thread::spawn(move || output.for_each(|line| drop(send.send(line))));
    lines
}

/// Returns a program that runs the toolbox, which is already built, and no other package.
fn cargo() -> String {
    let program = toolbox().get_program().to_owned();
    format!(
        "#!/bin/sh\n[ \"$1 $2 $3 $4 $5\" = 'run -q -p toolbox --' ] || exit 9\nshift 5\nexec '{}' \"$@\"\n",
        program.display()
    )
}

/// Returns a program that runs the command, which the tests of its package have built.
fn lambda_tools() -> String {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("lambda-tools");
    assert!(program.exists(), "{} is not built", program.display());
    format!("#!/bin/sh\nexec '{}' \"$@\"\n", program.display())
}

/// Returns a program that runs the installed Inspector, and no other package or version.
fn inspector() -> String {
    let pinned = fs::read_to_string(repository("tests/conformance/package.json")).unwrap();
    let pinned: serde_json::Value = serde_json::from_str(&pinned).unwrap();
    let name = "@modelcontextprotocol/inspector";
    let version = pinned["dependencies"][name].as_str().unwrap();
    let program = repository("target/conformance/node_modules/.bin/inspector");
    format!(
        "#!/bin/sh\n[ \"$1 $2\" = '-y {name}@{version}' ] || exit 9\nshift 2\nexec '{}' '{}' \"$@\"\n",
        node().display(),
        program.display()
    )
}
