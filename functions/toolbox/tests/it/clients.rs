//! External programs that call the toolbox: the published Python client, and cargo-lambda.
//!
//! They come from PyPI. `tests/all` installs them and runs these tests; a plain `cargo test` lists
//! them as ignored.

use std::process::{Command, Output};

use lambda_tools::{ApiKeys, Auth, secrets::Secrets};
use serde_json::Value;
use test_support::Served;
use toolbox::Endpoints;

use crate::support::{Running, installed, isolated, repository, server};

/// Serves the toolbox from this process.
async fn serve(auth: impl Into<Auth>, secrets: Secrets) -> Served {
    let server = server(toolbox::tools(Endpoints::default()));
    let server = server.auth(auth).secrets(secrets);
    Served::start(server.into_router().unwrap()).await
}

/// Returns the standard output of a program. Panics with all output if the program failed.
pub(crate) fn stdout_of(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{}\n{stdout}\n{stderr}",
        output.status
    );
    stdout
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client oxp; run tests/all"]
async fn the_published_python_client_works() {
    let open = serve(Auth::none(), Secrets::none()).await;
    let key = Secrets::fixed([("KEY", "right-0123456789")]);
    let closed = serve(ApiKeys::with_ids(["KEY"]), key).await;
    let python = installed("python");
    let script = repository("functions/toolbox/tests/oxp_client.py");
    let run = move || {
        Command::new(python)
            .arg(script)
            .args([&open.url, &closed.url])
            .output()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    let stdout = stdout_of(&output);
    assert!(stdout.ends_with("11 checks passed\n"), "{stdout}");
}

/// Tests that take too long for every change: `.ci/long` runs them.
mod long {
    use std::{
        net::{TcpListener, TcpStream},
        time::{Duration, Instant},
    };

    use super::*;

    /// Over HTTP, as a client would call the deployed function, and as an event.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs cargo-lambda; run .ci/long"]
    async fn the_toolbox_runs_in_the_emulator_of_cargo_lambda() {
        let port = free_port().to_string();
        let lambda = |subcommand: &str| {
            let mut command = isolated(Command::new(installed("cargo-lambda")));
            command.args(["lambda", subcommand]);
            command.args(["-A", "127.0.0.1", "-P", &port]);
            command.current_dir(repository(""));
            command
        };
        let mut watch = lambda("watch");
        watch.args(["--disable-cors", "--ignore-changes", "-p", "toolbox"]);
        watch
            .env("TOOLS_BASE_PATH", "/agents")
            .env("TOOLS_EVENTS", "http-api,load-balancer");
        // Neither AWS's secret store nor its tables.
        watch
            .env("TOOLS_SECRETS", "none")
            .env("TOOLS_IDEMPOTENCY", "none");
        let mut watch = Running::start(&mut watch);
        wait_for(&port);
        let url = format!("http://127.0.0.1:{port}");
        // The first request waits for the build, which takes longer than clients do.
        let health = reqwest::get(format!("{url}/health")).await.unwrap();
        assert_eq!(health.status(), 200);
        for event in ["calculator/add.header-form", "sources/alb"] {
            let event = repository(&format!("events/{event}.json"));
            let mut invoke = lambda("invoke");
            let invoke = invoke.args(["toolbox", "--data-file"]).arg(event);
            let answer: Value =
                serde_json::from_str(&stdout_of(&invoke.output().unwrap())).unwrap();
            let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
            assert_eq!(body["value"], 15, "{answer}");
        }
        watch.signal("INT");
        let has_ended = watch.ends_within(10).is_some();
        assert!(has_ended, "cargo lambda watch does not stop");
    }

    fn free_port() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    }

    fn wait_for(port: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
            assert!(Instant::now() < end, "cargo lambda watch does not listen");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
