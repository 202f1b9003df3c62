//! The function in a container, as the platforms run it that run one.
//!
//! It is the last stage of the `Dockerfile`: the binary in a root file system that has nothing else,
//! with the image's variables and user, as process 1.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use axum::{Router, routing::get};
use serde_json::{Value, json};
use test_support::{Running, Served, free_address, isolated, repository, requests::Recorder};

use crate::{clients::stdout_of, support::toolbox};

const OPEN: (&str, &str) = ("TOOLS_AUTH", "none");

/// In the base image, as on Debian.
const ROOT_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Returns the instructions of the last stage, without those for licenses, which only the functions of
/// this repository have.
fn last_stage(dockerfile: &str) -> Vec<String> {
    let text = fs::read_to_string(repository(dockerfile)).unwrap();
    let (_, stage) = text.rsplit_once("\nFROM ").unwrap();
    let lines = stage.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter(|line| *line != "ARG FUNCTION" && !line.contains("LICENSES"));
    lines.map(str::to_owned).collect()
}

/// Returns what follows an instruction of the last stage.
fn instruction(name: &str) -> String {
    let stage = last_stage("Dockerfile");
    let mut found = stage.iter().filter_map(|line| line.strip_prefix(name));
    found.next().unwrap().trim().to_owned()
}

/// The root file system of the image, which is removed when dropped.
struct Image(PathBuf);

impl Image {
    /// Unpacks the binary, and of the base image the root certificates and the libraries that the binary
    /// is linked with.
    fn for_test(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("container-{name}"));
        let _ = fs::remove_dir_all(&root);
        let program = toolbox().get_program().to_owned();
        assert_eq!(instruction("COPY"), "--from=build /function /function");
        fs::create_dir_all(&root).unwrap();
        fs::copy(&program, root.join("function")).unwrap();
        let libraries = stdout_of(&Command::new("ldd").arg(&program).output().unwrap());
        let libraries = libraries.split_whitespace();
        let libraries = libraries.filter(|it| it.starts_with('/'));
        for file in libraries.chain([ROOT_CERTIFICATES]) {
            let to = root.join(&file[1..]);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(file, to).unwrap();
        }
        Self(root)
    }

    /// Returns a command whose child is process 1 in the root file system, which is read-only; with these
    /// variables, and the network of the tests. It needs no privileges, because it makes a user of the
    /// caller.
    fn command(&self, settings: &[(&str, &str)]) -> Command {
        const READ_ONLY: &str =
            r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec env -i "$@""#;
        let root = self.0.to_str().unwrap();
        let user = instruction("USER");
        let user = user.split(':').next().unwrap();
        let entrypoint: Vec<String> = serde_json::from_str(&instruction("ENTRYPOINT")).unwrap();
        let settings = settings.iter().map(|(name, it)| format!("{name}={it}"));
        let mut command = isolated(Command::new("unshare"));
        command
            .args(["--user", "--map-root-user", "--mount", "--pid", "--fork"])
            .args(["--kill-child", "sh", "-c", READ_ONLY, root])
            .args(instruction("ENV").split(' '))
            .args(settings)
            .args(["unshare", "--user"])
            .arg(format!("--map-user={user}"))
            .arg(format!("--map-group={user}"))
            .arg(format!("--root={root}"))
            .args(entrypoint);
        command
    }

    /// Starts a container with these variables on a free port; returns it once it listens.
    async fn start(&self, settings: &[(&str, &str)]) -> Container {
        let address = free_address();
        let port = address.port().to_string();
        let settings = [settings, &[("PORT", &*port)]].concat();
        let mut command = self.command(&settings);
        Container {
            running: Running::listening(&mut command, address, 20).await,
            // An address that only a server on all addresses listens at.
            url: format!("http://127.0.0.2:{port}"),
        }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running container.
struct Container {
    url: String,
    running: Running,
}

impl Container {
    /// Sends SIGTERM to the server, which is process 1.
    fn terminate(&self) {
        let parent = self.running.child.id().to_string();
        let status = Command::new("pkill")
            .args(["--signal", "TERM", "--parent", &parent])
            .status();
        assert!(status.unwrap().success());
    }

    /// Returns the exit code, if the server exits by itself within `seconds`, and its output.
    fn end_within(mut self, seconds: u64) -> (Option<i32>, Vec<String>) {
        let code = self.running.ends_within(seconds);
        (code, self.running.end())
    }
}

/// Calls a tool in OXP; returns the body of the response.
async fn call(url: &str, call: &Value) -> reqwest::Result<Value> {
    let request = reqwest::Client::new().post(format!("{url}/tools/call"));
    request.body(call.to_string()).send().await?.json().await
}

#[tokio::test]
#[ignore = "needs the deployable function; run .ci/long"]
async fn the_server_writes_nothing_and_logs_json() {
    let image = Image::for_test("read-only");
    let mut recording = image.command(&[OPEN, ("PORT", "0"), ("RECORD_EVENTS", "/events")]);
    let output = recording.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("Read-only file system"),
        "root, or everyone, must be able to create user namespaces: {text}"
    );

    let container = image.start(&[OPEN, ("TOOLS_METRICS", "cloudwatch")]).await;
    let add = json!({"tool_id": "Calculator.Add@1.0.0", "input": {"a": 1, "b": 2}});
    let answer = call(&container.url, &add).await.unwrap();
    assert_eq!(answer["value"], 3, "{answer}");
    container.terminate();
    let (code, lines) = container.end_within(10);
    assert_eq!(code, Some(0));
    let lines: Vec<Value> = lines
        .iter()
        .map(|it| serde_json::from_str(it).unwrap_or_else(|error| panic!("{error}: {it}")))
        .collect();
    assert!(lines.iter().any(|it| it["_aws"].is_object()), "{lines:?}");
    let messages: Vec<_> = lines
        .iter()
        .filter_map(|it| it["message"].as_str())
        .collect();
    assert!(messages.contains(&"call"), "{messages:?}");
    assert_eq!(messages.last(), Some(&"Stopped."));
}

/// For as long as it may take, which is longer than without the setting, or until its limit.
#[tokio::test]
#[ignore = "needs the deployable function; run .ci/long"]
async fn sigterm_lets_running_calls_end_within_the_limit() {
    for (seconds, is_completed) in [("20", true), ("1", false)] {
        let image = Image::for_test("sigterm");
        let requests = Recorder::with_delay(Duration::from_secs(8));
        let empty = get(async || json!({"resultSizeEstimate": 0}).to_string());
        let api = Router::new().route("/gmail/v1/users/me/messages", empty);
        let api = Served::start(requests.layer(api)).await;
        let settings = [OPEN, ("GMAIL_URL", &api.url), ("SHUTDOWN_SECONDS", seconds)];
        let container = image.start(&settings).await;
        let url = container.url.clone();
        let context = json!({"user_id": "u", "authorization": [{"id": "google", "token": "t"}]});
        let body = json!({"tool_id": "Gmail.GetEmails", "context": context});
        let answer = tokio::spawn(async move { call(&url, &body).await });
        while requests.count() == 0 {
            assert!(!answer.is_finished(), "the tool calls the API");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        container.terminate();
        if is_completed {
            let answer = answer.await.unwrap().unwrap();
            assert_eq!(answer["value"], json!({"emails": []}), "{answer}");
            assert_eq!(container.end_within(3).0, Some(0));
        } else {
            let (code, lines) = container.end_within(4);
            assert_eq!(code, Some(0));
            let cut = "stopped while calls were still running";
            assert!(lines.concat().contains(cut), "{lines:?}");
            assert!(answer.await.unwrap().is_err());
        }
    }
}

#[test]
#[ignore = "needs the deployable function; run .ci/long"]
fn generated_projects_have_the_same_image() {
    let of_project = last_stage("templates/function/Dockerfile");
    assert_eq!(of_project, last_stage("Dockerfile"));
}
