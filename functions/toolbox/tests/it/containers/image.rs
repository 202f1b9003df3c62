//! The image: what the last stage of the `Dockerfile` says, and containers of it.

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::Duration,
};

use parse_dockerfile::{Instruction, Source};
use test_support::{Running, repository};

use crate::support::toolbox;

/// In the base image, as on Debian.
const ROOT_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Returns true if podman runs an image, and the tests do not unpack one.
pub(super) fn is_built() -> bool {
    std::env::var_os("TEST_CONTAINER_IMAGE").is_some()
}

/// Returns the arguments with which `unshare` needs no privileges, and makes a user of the caller.
pub(super) fn user_namespace(user: &str) -> Vec<String> {
    match user {
        "root" => vec!["--user".into(), "--map-root-user".into()],
        number => vec![
            "--user".into(),
            format!("--map-user={number}"),
            format!("--map-group={number}"),
        ],
    }
}

/// The last stage of a `Dockerfile`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Stage {
    base: String,
    /// The sources and destinations of files.
    copies: Vec<(PathBuf, String)>,
    /// Variables, as `NAME=VALUE`.
    variables: Vec<String>,
    user: String,
    entrypoint: Vec<String>,
}

impl Stage {
    pub(super) fn read(dockerfile: &str) -> Self {
        let text = fs::read_to_string(repository(dockerfile)).unwrap();
        let text = text.replace("${FUNCTION}", "toolbox");
        let dockerfile = parse_dockerfile::parse(&text).unwrap();
        let last = dockerfile.stages().last().unwrap();
        let mut stage = Self {
            base: last.from.image.value.to_string(),
            ..Self::default()
        };
        for instruction in last.instructions {
            stage.add(instruction);
        }
        stage
    }

    /// Returns the stage without the licenses, which only the functions of this repository have.
    pub(super) fn without_licenses(mut self) -> Self {
        self.copies
            .retain(|(from, _)| !from.ends_with("THIRD-PARTY-LICENSES.txt"));
        self
    }

    fn add(&mut self, instruction: &Instruction<'_>) {
        match instruction {
            Instruction::Copy(copy) => {
                let [Source::Path(from)] = &copy.src[..] else {
                    panic!("{copy:?}")
                };
                let from = match &copy.options[..] {
                    [] => repository(&from.value),
                    // The first stage compiles it as `sam build` does for the other tests.
                    [_] if from.value == "/function" => toolbox().get_program().into(),
                    _ => panic!("{copy:?}"),
                };
                self.copies.push((from, copy.dest.value.to_string()));
            }
            Instruction::Env(env) => {
                let variables = env.arguments.value.split_whitespace();
                self.variables.extend(variables.map(str::to_owned));
            }
            Instruction::User(user) => {
                let number = user.arguments.value.split(':').next();
                self.user = number.unwrap().into();
            }
            Instruction::Entrypoint(entrypoint) => {
                let parse_dockerfile::Command::Exec(words) = &entrypoint.arguments else {
                    panic!("a shell, which the image does not have: {entrypoint:?}");
                };
                self.entrypoint = words.value.iter().map(|it| it.value.to_string()).collect();
            }
            Instruction::Arg(_) | Instruction::Expose(_) => {}
            other => panic!("these tests do not follow {other:?}"),
        }
    }

    /// Creates the root file system: the copied files, and of the base image the root certificates and
    /// the libraries that the binary is linked with.
    fn unpack(&self, root: &Path) {
        for (from, to) in &self.copies {
            let to = root.join(to.trim_start_matches('/'));
            let to = if to == *root || to.is_dir() {
                root.join(from.file_name().unwrap())
            } else {
                to
            };
            copy(from, &to);
        }
        let libraries = Command::new("ldd").arg(toolbox().get_program()).output();
        let libraries = libraries.unwrap();
        let libraries = String::from_utf8(libraries.stdout).unwrap();
        let libraries = libraries.split_whitespace();
        let libraries = libraries.filter(|it| it.starts_with('/'));
        for file in libraries.chain([ROOT_CERTIFICATES]) {
            copy(Path::new(file), &root.join(&file[1..]));
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
}

/// The root file system of an image, which is removed when dropped.
pub(super) struct RootFs(pub(super) PathBuf);

impl RootFs {
    /// Unpacks the last stage of the `Dockerfile`.
    pub(super) fn unpack(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("container-{name}"));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        Stage::read("Dockerfile").unpack(&root);
        Self(root)
    }
}

impl Drop for RootFs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running container, in the network of this process.
pub(super) struct Container {
    running: Running,
}

impl Container {
    /// Starts a container with these variables; returns it once it listens.
    pub(super) fn start(settings: &[(&str, &str)]) -> Self {
        let mut running = Running::start(&mut Self::command(settings));
        let port = settings.iter().find(|(name, _)| *name == "PORT");
        let port = port.map_or("8000", |(_, port)| port);
        for _ in 0..400 {
            if TcpStream::connect(format!("127.0.0.1:{port}")).is_ok() {
                return Self { running };
            }
            let code = running.ends_within(0);
            assert_eq!(code, None, "the server ends");
            sleep(Duration::from_millis(50));
        }
        panic!("the server does not listen");
    }

    /// Returns the command that runs a container with these variables, and ends with it.
    pub(super) fn command(settings: &[(&str, &str)]) -> Command {
        let settings = settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        match std::env::var("TEST_CONTAINER_IMAGE") {
            Ok(image) => with_podman(&image, settings),
            Err(_) => in_root_fs(&std::env::var("CONTAINER_ROOT").unwrap(), settings),
        }
    }

    /// Sends SIGTERM, and waits for the end.
    pub(super) fn stop(self) -> (Option<i32>, Vec<String>) {
        self.terminate();
        self.end_within(10)
    }

    /// Returns the exit code, if the server exits by itself within `seconds`, and its output.
    pub(super) fn end_within(mut self, seconds: u64) -> (Option<i32>, Vec<String>) {
        let code = self.running.ends_within(seconds);
        (code, self.running.end())
    }

    /// Sends SIGTERM to the server.
    pub(super) fn terminate(&self) {
        if is_built() {
            // podman passes it on.
            return self.running.signal("TERM");
        }
        let parent = self.running.child.id().to_string();
        let status = Command::new("pkill")
            .args(["--signal", "TERM", "--parent", &parent])
            .status();
        assert!(status.unwrap().success());
    }
}

/// Returns a command whose child is process 1 in a read-only root file system.
fn in_root_fs(root: &str, settings: impl Iterator<Item = String>) -> Command {
    const READ_ONLY: &str =
        r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec env -i "$@""#;
    let stage = Stage::read("Dockerfile");
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        READ_ONLY,
        root,
    ]);
    command.args(stage.variables).args(settings);
    command.arg("unshare").args(user_namespace(&stage.user));
    command.arg(format!("--root={root}")).args(stage.entrypoint);
    command
}

fn with_podman(image: &str, settings: impl Iterator<Item = String>) -> Command {
    let mut command = Command::new("podman");
    command.args([
        "--runtime",
        "runc",
        "run",
        "--rm",
        "--pull=never",
        "--network=host",
    ]);
    command.args(["--read-only", "--read-only-tmpfs=false"]);
    // Without these, podman raises the limits, which not every machine permits.
    command.args(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]);
    command
        .args(settings.map(|it| format!("--env={it}")))
        .arg(image);
    command
}
