//! The image: what the last stage of the `Dockerfile` says, and containers of it.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::Duration,
};

use parse_dockerfile::{Instruction, Source};
use test_support::{Running, isolated, repository};

use crate::support::toolbox;

/// In the base image, as on Debian.
const ROOT_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

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

/// The image: one that podman runs, or the last stage of the `Dockerfile` in a folder, which is
/// removed when dropped.
pub(super) enum Image {
    Built(String),
    Unpacked(PathBuf),
}

impl Image {
    /// Unpacks the last stage of the `Dockerfile`, unless there is an image.
    pub(super) fn for_test(name: &str) -> Self {
        if let Ok(image) = std::env::var("TEST_CONTAINER_IMAGE") {
            return Self::Built(image);
        }
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("container-{name}"));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        Stage::read("Dockerfile").unpack(&root);
        Self::Unpacked(root)
    }

    /// Returns the command that runs a container with these variables, and ends with it. It has the
    /// network of the tests.
    pub(super) fn command(&self, settings: &[(&str, &str)]) -> Command {
        let settings = settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        isolated(match self {
            Self::Built(image) => with_podman(image, settings),
            Self::Unpacked(root) => in_root_fs(root, settings),
        })
    }

    /// Starts a container with these variables on a free port; returns it once it listens.
    pub(super) fn start(&self, settings: &[(&str, &str)]) -> Container {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let port_text = port.to_string();
        let settings = [settings, &[("PORT", &port_text)]].concat();
        let mut running = Running::start(&mut self.command(&settings));
        let is_podman = matches!(self, Self::Built(_));
        for _ in 0..400 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                // An address that only a server on all addresses listens at.
                let url = format!("http://127.0.0.2:{port}");
                return Container {
                    url,
                    running,
                    is_podman,
                };
            }
            assert_eq!(running.ends_within(0), None, "the server ends");
            sleep(Duration::from_millis(50));
        }
        panic!("the server does not listen");
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Self::Unpacked(root) = self {
            let _ = fs::remove_dir_all(root);
        }
    }
}

/// A running container.
pub(super) struct Container {
    pub(super) url: String,
    running: Running,
    is_podman: bool,
}

impl Container {
    /// Sends SIGTERM to the server, which is process 1.
    pub(super) fn terminate(&self) {
        if self.is_podman {
            // podman passes it on.
            return self.running.signal("TERM");
        }
        let parent = self.running.child.id().to_string();
        let status = Command::new("pkill")
            .args(["--signal", "TERM", "--parent", &parent])
            .status();
        assert!(status.unwrap().success());
    }

    /// Returns the exit code, if the server exits by itself within `seconds`, and its output.
    pub(super) fn end_within(mut self, seconds: u64) -> (Option<i32>, Vec<String>) {
        let code = self.running.ends_within(seconds);
        (code, self.running.end())
    }
}

/// Returns a command whose child is process 1 in a read-only root file system. It needs no
/// privileges, because it makes a user of the caller.
fn in_root_fs(root: &Path, settings: impl Iterator<Item = String>) -> Command {
    const READ_ONLY: &str =
        r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec env -i "$@""#;
    let stage = Stage::read("Dockerfile");
    let root_text = root.to_str().unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "--pid", "--fork"])
        .args(["--kill-child", "sh", "-c", READ_ONLY, root_text])
        .args(stage.variables)
        .args(settings)
        .args(["unshare", "--user"])
        .arg(format!("--map-user={}", stage.user))
        .arg(format!("--map-group={}", stage.user))
        .arg(format!("--root={root_text}"))
        .args(stage.entrypoint);
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
